#include <gtest/gtest.h>
#include <omp.h>

#include "base/files.h"
#include "base/random.h"
#include "decode/model_bundle.h"
#include "effort.h"
#include "support/network_settings.h"
#include "support/whole_run.h"
#include "temporary.h"

namespace fovea {
namespace {

// A small Transformer with guided attention. The target is the source with other words, in reverse
// order.
class GuidedRun : public testing::Test {
 protected:
  GuidedRun() {
    omp_set_num_threads(1);  // a second thread would not help here
    Random random(1);
    std::string source, target, links;
    for (int i = 0; i < 120; ++i) {
      const uint64_t words = 1 + random.below(5);
      std::string reversed;
      for (uint64_t n = 0; n < words; ++n) {
        const std::string number = std::to_string(random.below(10));
        source += (n ? " w" : "w") + number;
        reversed = "v" + number + (n ? " " : "") + reversed;
        links += std::to_string(n) + "-" + std::to_string(words - 1 - n) + " ";
      }
      source += "\n";
      target += reversed + "\n";
      links += "\n";
    }
    write_atomically(folder_ / "source", source);
    write_atomically(folder_ / "target", target);
    write_atomically(folder_ / "links", links);
  }

  TrainOptions options() const {
    TrainOptions o;
    o.data.root = folder_.path();
    o.data.train_source = o.data.valid_source = {"source"};
    o.data.train_target = o.data.valid_target = {"target"};
    o.data.alignments = {"links"};
    o.vocabulary.kind = VocabularyKind::words;
    o.vocabulary.size = 0;
    o.model.encoder_layers = o.model.decoder_layers = 2;
    auto& own = transformer_of(o.model);
    o.model.size = own.inner = 16;
    own.heads = 2;
    o.batch.tokens = 100;
    o.schedule = {.lr = 0.01, .warmup = 5};
    own.norm = NormPlace::pre;
    o.train = {.updates = 60, .accumulate = 2, .log_every = 7, .guided_weight = 1};
    o.valid = {.every = 20, .patience = 0};
    return o;
  }

  void train(const std::string& name, const TrainOptions& o, int64_t stop = 0) {
    const RunEnd end = whole_run(folder_ / name, o, stop);
    EXPECT_EQ(end.outcome, stop ? RunOutcome::interrupted : RunOutcome::finished);
  }

  // The results that must be equal for two runs of the same task.
  std::string result(const std::string& name) const {
    std::string text = read_file(folder_ / name + "/model.safetensors");
    for (const MetricsLine& line : metrics(name))
      text += std::string(without_wall(metrics_line(line))) + "\n";
    return text;
  }
  std::vector<MetricsLine> metrics(const std::string& name) const {
    return read_metrics(folder_ / name + "/metrics.jsonl");
  }

  TemporaryFolder folder_;
};

TEST_F(GuidedRun, ReportsAFallingAlignmentLoss) {
  train("guided", options());
  std::vector<double> distances;
  for (const MetricsLine& line : metrics("guided")) {
    EXPECT_EQ(line.value("guided").has_value(), line.kind == "train");
    if (line.kind == "train") distances.push_back(*line.value("guided"));
  }
  ASSERT_GE(distances.size(), 8u);
  EXPECT_GT(distances.front(), 1);
  EXPECT_LT(distances.back(), 0.7 * distances.front());
  const ModelBundle package = load_package(folder_ / "guided");
  auto& own = transformer_of(package.config);
  EXPECT_EQ(own.alignment_layer, 0);
  EXPECT_EQ(own.alignment_head, 0);

  TrainOptions plain = options();
  plain.data.alignments = {};
  plain.train.guided_weight = 0;
  train("plain", plain);
  for (const MetricsLine& line : metrics("plain")) EXPECT_FALSE(line.value("guided"));
  const ModelBundle unguided = load_package(folder_ / "plain");
  EXPECT_LT(transformer_of(unguided.config).alignment_layer, 0);
  EXPECT_NE(read_file(folder_ / "plain" + "/model.safetensors"),
            read_file(folder_ / "guided" + "/model.safetensors"));
}

TEST_F(GuidedRun, AStoppedRunEndsWithTheSameBits) {
  train("straight", options());
  const std::string wanted = result("straight");
  for (const int64_t at : {1, 9, 20, 37}) {
    if (only_runs() && at != 9) continue;
    const std::string name = "stopped-" + std::to_string(at);
    train(name, options(), at);
    train(name, options());
    EXPECT_EQ(result(name), wanted) << at;
  }
}

TEST_F(GuidedRun, OtherLinksCountAsOtherData) {
  TrainOptions part = options();
  part.train.updates = 5;
  train("a", part);
  std::string links = read_file(folder_ / "links");
  write_atomically(folder_ / "links", links.substr(links.find('\n')));  // the first line is empty
  const std::string other = message_of(ExitCode::data, [&] { train("a", options()); });
  EXPECT_NE(other.find("the training text has changed ("), other.npos) << other;
}

TEST_F(GuidedRun, LinksAreCheckedBeforeAnythingElse) {
  TrainOptions o = options();
  o.data.alignments = {"none"};
  const std::string missing = message_of(ExitCode::files, [&] { train("a", o); });
  EXPECT_EQ(missing.find("data.alignments: "), 0u) << missing;
  write_atomically(folder_ / "short", "0-0\n");
  o.data.alignments = {"short"};
  const std::string lines = message_of(ExitCode::data, [&] { train("a", o); });
  EXPECT_NE(lines.find("source:2"), lines.npos) << lines;
  write_atomically(folder_ / "empty", std::string(120, '\n'));
  o.data.alignments = {"empty"};
  const std::string empty = message_of(ExitCode::data, [&] { train("a", o); });
  EXPECT_NE(empty.find("empty: no pair that is left"), empty.npos) << empty;
}

}  // namespace
}  // namespace fovea
