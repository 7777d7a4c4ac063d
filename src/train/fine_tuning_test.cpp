#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <filesystem>
#include <map>

#include "base/files.h"
#include "base/random.h"
#include "decode/model_bundle.h"
#include "models/adapter_directory.h"
#include "support/network_settings.h"
#include "support/whole_run.h"
#include "temporary.h"
#include "train/recipe_reader.h"

namespace fovea {
namespace {

using Values = std::map<std::string, std::vector<double>>;

// Sentences whose translation has the words in reverse order, and a model that was trained on them.
class FineTuning : public testing::Test {
 protected:
  FineTuning() {
    omp_set_num_threads(1);  // a second thread would not help here
    Random random(1);
    for (const char* name : {"old", "new"}) {
      std::string source, target;
      for (int i = 0; i < 60; ++i) {
        std::string line, reversed;
        for (uint64_t n = 1 + random.below(4); n > 0; --n) {
          const std::string word = "w" + std::to_string(random.below(10));
          line += word + " ";
          reversed.insert(0, word + " ");
        }
        source += line + "\n";
        target += reversed + "\n";
      }
      write_atomically(folder_ / (std::string(name) + ".s"), source);
      write_atomically(folder_ / (std::string(name) + ".t"), target);
    }
    testing::internal::CaptureStderr();
    train("base", base());
    testing::internal::GetCapturedStderr();
  }
  ~FineTuning() override { request_stop(0); }

  TrainOptions common() const {
    TrainOptions o;
    o.data.root = folder_.path();
    o.data.train_source = {"new.s"}, o.data.train_target = {"new.t"};
    o.data.valid_source = {"old.s"}, o.data.valid_target = {"old.t"};
    o.batch.tokens = 60;
    o.optimizer = {.weight_decay = 0.01, .clip = 1, .ema = 0.9};
    o.schedule = {.lr = 0.01, .warmup = 2};
    o.train = {.updates = 12, .accumulate = 2, .average = 2, .log_every = 1};
    o.valid = {.every = 4, .patience = 0};
    return o;
  }

  TrainOptions base() const {
    TrainOptions o = common();
    o.data.train_source = {"old.s"}, o.data.train_target = {"old.t"};
    o.vocabulary.kind = VocabularyKind::words;
    o.vocabulary.size = 0;
    o.model.encoder_layers = o.model.decoder_layers = 1;
    o.model.size = transformer_of(o.model).inner = 16;
    transformer_of(o.model).heads = 2;
    o.train.updates = 40;
    o.valid.every = 40;
    return o;
  }

  // What a recipe without `model` and `vocabulary` means.
  TrainOptions tuned() const {
    const std::string from = folder_ / "base";
    TrainOptions o = read_recipe([&](Settings& s) { s.set("train.from=" + from); }, ExitCode::data);
    const TrainOptions usual = common();
    o.data = usual.data, o.batch = usual.batch, o.optimizer = usual.optimizer;
    o.schedule = usual.schedule, o.valid = usual.valid, o.train = usual.train;
    o.train.from = from;
    return o;
  }

  TrainOptions adapting() const {
    TrainOptions o = tuned();
    o.train.lora = {.rank = 2, .alpha = 4, .dropout = 0.1};
    return o;
  }

  RunEnd train(const std::string& name, const TrainOptions& o, int64_t stop = 0) {
    return whole_run(folder_ / name, o, stop);
  }

  Values values(const std::string& name, const std::string& adapter = "") const {
    const ModelBundle bundle =
        load_package(folder_ / name, Cpu{}, adapter.empty() ? "" : folder_ / adapter);
    Values all;
    for (const auto& p : bundle.model->parameters().all()) all[p.name] = p.tensor.values();
    return all;
  }

  std::vector<double> losses(const std::string& name) const {
    std::vector<double> all;
    for (const MetricsLine& line : read_metrics(folder_ / (name + "/metrics.jsonl")))
      if (line.kind == "train") all.push_back(*line.value("loss"));
    return all;
  }

  std::string newest(const std::string& name) const {
    const FileSeries series(folder_ / (name + "/checkpoints"), "checkpoint");
    return read_file(series.path(series.numbers().back()));
  }

  // A stopped run must end with the same bits, also if it stops twice.
  void expect_resumes(const TrainOptions& o, const std::string& weights) {
    EXPECT_EQ(train("whole", o).outcome, RunOutcome::finished);
    EXPECT_EQ(train("stopped", o, 3).outcome, RunOutcome::interrupted);
    EXPECT_EQ(train("stopped", o, 5).outcome, RunOutcome::interrupted);
    EXPECT_EQ(train("stopped", o).outcome, RunOutcome::finished);
    EXPECT_TRUE(newest("whole") == newest("stopped"));
    EXPECT_EQ(read_file(folder_ / ("whole/" + weights)),
              read_file(folder_ / ("stopped/" + weights)));
  }

  TemporaryFolder folder_;
};

TEST_F(FineTuning, ContinuesFromTheLossOfTheModel) {
  train("tuned", tuned());
  EXPECT_LT(losses("tuned").front(), 1.3 * losses("base").back());
  EXPECT_LT(losses("tuned").front(), 0.8 * losses("base").front());
  EXPECT_EQ(load_config(folder_ / "tuned").size, 16);
}

TEST_F(FineTuning, ResumesWithTheSameBits) { expect_resumes(tuned(), "model.safetensors"); }
TEST_F(FineTuning, OfAnAdapterResumesWithTheSameBits) { expect_resumes(adapting(), kAdapterFile); }

TEST_F(FineTuning, RefusesToResumeFromAnotherModel) {
  train("tuned", tuned(), 3);
  TrainOptions other = base();
  other.train.seed = 9;
  train("other", other);
  other = tuned();
  other.train.from = folder_ / "other";
  const std::string said = message_of(ExitCode::data, [&] { train("tuned", other); });
  EXPECT_NE(said.find("the model of train.from has changed"), said.npos) << said;
}

TEST_F(FineTuning, KeepsFrozenParameters) {
  TrainOptions o = tuned();
  o.train.freeze = {"encoder/*", "*/W_Q"};
  expect_resumes(o, "model.safetensors");
  const Values before = values("base"), after = values("whole");
  for (const auto& [name, value] : before) {
    const bool frozen = name.starts_with("encoder/") || name.ends_with("/W_Q");
    const bool effective = !name.ends_with("/b_K");  // softmax cancels it
    if (frozen || effective) {
      EXPECT_EQ(after.at(name) == value, frozen) << name;
    }
  }
}

TEST_F(FineTuning, OfAllParametersFrozenIsAnError) {
  TrainOptions o = tuned();
  o.train.freeze = {"*"};
  message_of(ExitCode::data, [&] { train("tuned", o); });
  o.train.freeze = {"encodr/*"};
  const std::string said = message_of(ExitCode::data, [&] { train("tuned", o); });
  EXPECT_NE(said.find("encoder/*"), said.npos) << said;
}

TEST_F(FineTuning, TrainsOnlyTheAdapter) {
  const RunEnd end = train("adapter", adapting());
  EXPECT_FALSE(std::filesystem::exists(folder_ / "adapter/model.safetensors"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "adapter/vocab.txt"));
  int64_t size = 0;
  const auto file = SafetensorsFile::open(folder_ / "adapter/adapter.safetensors");
  for (const TensorInfo& t : file.tensors()) size += t.elements();
  // 3 attentions of 4 matrices 16 × 16, and 2 layers with 2 matrices 16 × 16.
  EXPECT_EQ(size, 2 * (12 + 4) * (16 + 16));
  EXPECT_GT(end.parameters, size);
  EXPECT_LT(losses("adapter").back(), losses("adapter").front());
  const Values before = values("base"), after = values("base", "adapter");
  for (const auto& [name, value] : before) {
    const bool target = after.at(name) != value;
    EXPECT_EQ(target, name.find("/W_") != name.npos && !name.ends_with("/b")) << name;
  }
}

TEST_F(FineTuning, OfAnAdapterOfPartsOfTheModel) {
  TrainOptions o = adapting();
  o.train.lora.targets = {"encoder/*/W_V", "source/E"};
  train("adapter", o);
  const Values before = values("base"), after = values("base", "adapter");
  for (const auto& [name, value] : before)
    EXPECT_EQ(after.at(name) != value, name == "source/E" || name == "encoder/layers/0/attend/W_V")
        << name;
  o.train.lora.targets = {"*/b"};
  message_of(ExitCode::data, [&] { train("vectors", o); });
}

TEST_F(FineTuning, AddsPieces) {
  TrainOptions o = tuned();
  o.vocabulary.add = {"w7", "kubectl"};
  o.schedule.lr = 1e-9;
  expect_resumes(o, "model.safetensors");
  const ModelBundle bundle = load_package(folder_ / "whole");
  const Vocabulary old = load_vocabularies(folder_ / "base").source;
  EXPECT_EQ(bundle.source.size(), old.size() + 1);
  EXPECT_EQ(bundle.source.id("kubectl"), old.size());
  const Values before = values("base"), after = values("whole");
  for (size_t i = 0; i < before.at("source/E").size(); ++i)
    EXPECT_NEAR(after.at("source/E")[i], before.at("source/E")[i], 1e-4);
}

TEST_F(FineTuning, MixesTexts) {
  TrainOptions o = tuned();
  o.data.train_source.push_back("old.s"), o.data.train_target.push_back("old.t");
  o.data.weights = {"1", "0.5"};
  testing::internal::CaptureStderr();
  expect_resumes(o, "model.safetensors");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("60 pairs × 0.5, 33.3 % of the pairs"), log.npos) << log;
  train("mixed", o, 3);
  o.data.weights = {"1", "0.25"};
  const std::string said = message_of(ExitCode::data, [&] { train("mixed", o); });
  EXPECT_NE(said.find("data.weights was "), said.npos) << said;
}

TEST_F(FineTuning, OfAnotherNetworkNamesTheSettingAndBothValues) {
  const std::string from = folder_ / "base";
  const auto refusal = [&](const std::string& setting) {
    return message_of(ExitCode::data, [&] {
      read_recipe(
          [&](Settings& s) {
            s.set("train.from=" + from);
            s.set(setting);
          },
          ExitCode::data);
    });
  };
  for (const auto& [setting, parts] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"model.size=32", {"model.size", "32", "16", from}},
           {"model.type=recurrent", {"model.type", "recurrent", "transformer"}},
           {"model.norm=pre", {"model.norm", "pre", "post"}}}) {
    const std::string said = refusal(setting);
    for (const std::string& part : parts) EXPECT_NE(said.find(part), said.npos) << said;
  }
  const TrainOptions other = read_recipe(
      [&](Settings& s) {
        s.set("train.from=" + from);
        s.set("model.dropout=0.3");
        s.set("model.size=16");
      },
      ExitCode::data);
  EXPECT_EQ(other.model.dropout, 0.3);
}

TEST_F(FineTuning, RefusesSettingsThatDoNotFitAnAdapter) {
  for (const auto& change : std::vector<std::function<void(TrainOptions&)>>{
           [](TrainOptions& o) { o.train.from.clear(); },
           [](TrainOptions& o) { o.train.freeze = {"encoder/*"}; },
           [](TrainOptions& o) { o.vocabulary.add = {"x"}; },
           [](TrainOptions& o) { o.vectors.source = "x"; },
           [](TrainOptions& o) { o.train.lora.rank = 0; }}) {
    TrainOptions o = adapting();
    change(o);
    message_of(ExitCode::data, [&] { o.complete(ExitCode::data); });
  }
  for (const auto& weights :
       std::vector<std::vector<std::string>>{{"1", "1"}, {"-1"}, {"x"}, {""}}) {
    TrainOptions o = tuned();
    o.data.weights = weights;
    message_of(ExitCode::data, [&] { o.complete(ExitCode::data); });
  }
}

}  // namespace
}  // namespace fovea
