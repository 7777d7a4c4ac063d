#include "train/train_model.h"

#include <gtest/gtest.h>
#include <omp.h>

#include "base/files.h"
#include "base/random.h"
#include "decode/model_bundle.h"
#include "support/network_settings.h"
#include "support/whole_run.h"
#include "temporary.h"
#include "vectors/word_vectors.h"

namespace fovea {
namespace {

constexpr int64_t kSize = 8, kKnown = 6;  // size of a vector; number of words with a vector

std::string word(uint64_t i) { return "w" + std::to_string(i); }

// Trains on sentences with 12 different words; half of these have a vector.
class VectorRun : public testing::Test {
 protected:
  VectorRun() {
    omp_set_num_threads(1);  // a second thread would not help here
    Random random(1);
    std::string text, labelled, vectors;
    for (int i = 0; i < 80; ++i) {
      std::string line;
      for (uint64_t n = 2 + random.below(4); n > 0; --n) line += word(random.below(12)) + " ";
      text += line + "\n";
      labelled += "label" + std::to_string(random.below(2)) + " " + line + "\n";
    }
    for (int64_t i = 0; i < kKnown; ++i) {
      vectors += word(static_cast<uint64_t>(i));
      for (int64_t j = 0; j < kSize; ++j) vectors += " " + std::to_string(0.1 * random.normal());
      vectors += "\n";
    }
    write_atomically(folder_ / "text", text);
    write_atomically(folder_ / "labelled", labelled);
    write_atomically(folder_ / "vectors", vectors);
  }
  ~VectorRun() override { request_stop(0); }

  // Options of a small model of a type, with every setting that could change a weight.
  TrainOptions options(const std::string& type) const {
    TrainOptions o;
    o.data.root = folder_.path();
    o.vocabulary.kind = VocabularyKind::words;
    o.vocabulary.size = 0;
    choose_network(o.model, type);
    o.model.encoder_layers = o.model.decoder_layers = 1;
    o.model.size = kSize;
    if (type == "transformer")
      transformer_of(o.model).inner = kSize, transformer_of(o.model).heads = 2;
    o.vectors = {.source = "vectors", .target = {}, .frozen = true, .rescale = false};
    o.batch.tokens = 40;
    o.optimizer = {.weight_decay = 0.05, .clip = 1, .ema = 0.9};
    o.schedule = {.lr = 0.01, .warmup = 2};
    o.train = {.updates = 12, .accumulate = 2, .average = 2, .log_every = 5};
    o.valid = {.every = 4, .patience = 0};
    if (type == "reader") {
      o.data.task = TaskKind::classify;
      reader_of(o.model).attention.kind = "static";
      o.data.train = o.data.valid = {"labelled"};
    } else {
      o.data.train_source = o.data.train_target = {"text"};
      o.data.valid_source = o.data.valid_target = {"text"};
    }
    return o;
  }

  RunEnd train(const std::string& name, const TrainOptions& o, int64_t stop = 0) {
    return whole_run(folder_ / name, o, stop);
  }

  std::string newest(const std::string& name) const {
    const FileSeries series(folder_ / (name + "/checkpoints"), "checkpoint");
    return read_file(series.path(series.numbers().back()));
  }

  // Checks that words with a vector have it in their rows, and that all other rows have changed.
  void expect_frozen(const std::string& name, const std::string& table) {
    const ModelBundle package = load_package(folder_ / name);
    const auto& vocabulary = table == "target/E" ? package.target : package.source;
    const WordVectors vectors = WordVectors::read(folder_ / "vectors");
    const auto values = package.model->parameters().find(table)->tensor.values();
    const auto before =
        make_model(options_.model, options_.train.seed)->parameters().find(table)->tensor.values();
    int64_t found = 0;
    for (int32_t id = kSpecials; id < vocabulary.size(); ++id) {
      const int64_t at = vectors.find(vocabulary.name(id));
      found += at >= 0;
      bool moved = false;
      for (int64_t j = 0; j < kSize; ++j) {
        const double value = values[id * kSize + j];
        if (at >= 0) {
          EXPECT_EQ(value, static_cast<double>(vectors.vector(at)[j])) << vocabulary.name(id);
        }
        moved = moved || value != before[id * kSize + j];
      }
      EXPECT_TRUE(moved) << vocabulary.name(id);
    }
    EXPECT_EQ(found, kKnown);
  }

  // Checks that an uninterrupted and a stopped run end with the same bits and have not changed
  // frozen rows.
  void expect_all(const std::string& name, const std::string& table) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(train(name, options_).outcome, RunOutcome::finished);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("found 6 of 12 pieces (50.0 %), missing 6: w"), std::string::npos) << log;
    options_.model = load_package(folder_ / name).config;
    expect_frozen(name, table);
    options_.model.source_words = options_.model.target_words = 0;
    EXPECT_EQ(train(name + "-stopped", options_, 9).outcome, RunOutcome::interrupted);
    EXPECT_EQ(train(name + "-stopped", options_).outcome, RunOutcome::finished);
    EXPECT_TRUE(newest(name) == newest(name + "-stopped"));
    EXPECT_EQ(read_file(folder_ / (name + "/model.safetensors")),
              read_file(folder_ / (name + "-stopped/model.safetensors")));
  }

  TemporaryFolder folder_;
  TrainOptions options_;
};

TEST_F(VectorRun, FrozenRowsOfATransformer) {
  options_ = options("transformer");
  expect_all("tied", "source/E");  // one table for embeddings and output layer
  options_ = options("transformer");
  options_.model.tied = TiedEmbeddings::none;
  std::swap(options_.vectors.source, options_.vectors.target);
  expect_all("untied", "target/E");
}

TEST_F(VectorRun, FrozenRowsOfARecurrentModel) {
  options_ = options("recurrent");
  options_.model.tied = TiedEmbeddings::output;
  recurrent_of(options_.model).embedding = kSize;
  options_.model.size = 12;
  options_.vectors.target = "vectors";
  expect_all("model", "source/E");
  options_.model = load_package(folder_ / "model").config;
  expect_frozen("model", "target/E");
}

TEST_F(VectorRun, FrozenRowsOfAReader) {
  options_ = options("reader");
  expect_all("model", "source/E");
}

TEST_F(VectorRun, RowsThatAreNotFrozenChange) {
  options_ = options("recurrent");
  options_.vectors.frozen = false;
  train("tuned", options_);
  options_.vectors.source.clear();
  train("random", options_);
  EXPECT_FALSE(newest("tuned") == newest("random"));
  const ModelBundle package = load_package(folder_ / "tuned");
  const WordVectors vectors = WordVectors::read(folder_ / "vectors");
  const auto values = package.model->parameters().find("source/E")->tensor.values();
  const int32_t id = package.source.encode("w0").front();
  double apart = 0, length = 0;
  for (int64_t j = 0; j < kSize; ++j) {
    const double first = vectors.vector(vectors.find("w0"))[j], now = values[id * kSize + j];
    apart += (now - first) * (now - first);
    length += first * first;
  }
  EXPECT_GT(apart, 0);
  EXPECT_LT(apart, length);  // the row is still near the vector
}

// The number of updates of past_end() in a new process.
std::optional<int64_t> ended_at(const std::string& directory, TrainOptions o) {
  o.complete(ExitCode::data);
  TrainData data;
  load_vocabularies(data, o, directory);
  load_text(data, o);
  fit_model(o.model, data);
  const auto end = past_end({.options = o, .settings = "", .directory = directory}, data);
  return end ? std::optional(end->updates) : std::nullopt;
}

TEST_F(VectorRun, ARunIsPastItsEndAfterItsLastUpdate) {
  options_ = options("recurrent");
  options_.vectors = {};
  const std::string directory = folder_ / "model";
  EXPECT_EQ(ended_at(directory, options_), std::nullopt);
  train("model", options_, 9);
  EXPECT_EQ(ended_at(directory, options_), std::nullopt) << "stopped";
  EXPECT_EQ(train("model", options_).updates, 12);
  EXPECT_EQ(ended_at(directory, options_), 12);
  TrainOptions other = options_;
  other.train.updates = 13;
  EXPECT_EQ(ended_at(directory, other), std::nullopt) << "more updates are requested";
  other = options_;
  other.train.seed = 99;
  EXPECT_EQ(ended_at(directory, other), std::nullopt) << "another run";
  const FileSeries series(directory + "/checkpoints", "checkpoint");
  write_atomically(series.path(series.numbers().back()), "damaged");
  EXPECT_EQ(ended_at(directory, options_), std::nullopt) << "only train_model can detect this";
}

TEST_F(VectorRun, OtherFrozenVectorsAreAnotherRun) {
  options_ = options("recurrent");
  train("model", options_);
  EXPECT_EQ(ended_at(folder_ / "model", options_), 12);
  write_atomically(folder_ / "vectors", "w1 1 2 3 4 5 6 7 8\n");
  EXPECT_EQ(ended_at(folder_ / "model", options_), std::nullopt);
}

TEST_F(VectorRun, ResumingRefusesOtherVectors) {
  options_ = options("transformer");
  const RunEnd end = train("model", options_, 5);
  write_atomically(folder_ / "vectors", "w1 1 2 3 4 5 6 7 8\n");
  // The identity of results must depend on the vectors of the model.
  const RunEnd other = train("other", options_, 5);
  EXPECT_NE(difference(end.identity, other.identity).find("vectors.source has changed"),
            std::string::npos);
  const std::string changed = message_of(ExitCode::data, [&] { train("model", options_); });
  EXPECT_NE(changed.find("vectors.source has changed"), std::string::npos) << changed;
  options_.vectors.frozen = false;
  const std::string tuned = message_of(ExitCode::data, [&] { train("model", options_); });
  EXPECT_NE(tuned.find("vectors.frozen was true"), std::string::npos) << tuned;
}

}  // namespace
}  // namespace fovea
