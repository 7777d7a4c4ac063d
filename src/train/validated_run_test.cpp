#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <set>

#include "base/random.h"
#include "decode/model_bundle.h"
#include "decode/translator.h"
#include "eval/chrf.h"
#include "gemm/gemm_kernel.h"
#include "support/network_settings.h"
#include "support/whole_run.h"
#include "temporary.h"
#include "train/training_metrics.h"

namespace fovea {
namespace {

// Complete runs on sentences with 12 different words. They check that validation follows the
// recipe.
class ValidatedRun : public ::testing::Test {
 protected:
  ValidatedRun() {
    omp_set_num_threads(1);  // a second thread would not help here
    Random random(1);
    std::string text;
    for (int i = 0; i < 80; ++i) {
      std::string line;
      for (uint64_t n = 2 + random.below(6); n > 0; --n)
        line += (line.empty() ? "w" : " w") + std::to_string(random.below(12));
      lines_.push_back(line);
      text += line + "\n";
    }
    write_atomically(folder_ / "text", text);
    options_.data.root = folder_.path();
    options_.data.train_source = options_.data.train_target = {"text"};
    options_.data.valid_source = options_.data.valid_target = {"text"};
    options_.vocabulary.kind = VocabularyKind::words;
    options_.vocabulary.size = 0;
    options_.model.encoder_layers = options_.model.decoder_layers = 1;
    auto& own = transformer_of(options_.model);
    options_.model.size = own.inner = 16;
    own.heads = 2;
    options_.batch.tokens = 100;
    options_.schedule = {.lr = 0.01, .warmup = 2};
    options_.train = {.updates = 30};
    options_.valid = {.every = 30, .metrics = {"chrf"}, .patience = 0};
  }
  ~ValidatedRun() override { request_stop(0); }

  // The chrF of the saved model in a separate search.
  double chrf_of(const std::string& name, const SearchOptions& search) const {
    const ModelBundle package = load_package(folder_ / name);
    const Translator translator({package.model.get()}, package.source, package.target,
                                {.search = search, .warn = false});
    Lines found;
    for (const Translation& t : translator.translate(lines_)) found.push_back(t.text);
    return chrf(found, lines_, {});
  }

  TemporaryFolder folder_;
  TrainOptions options_;
  Lines lines_;
};

TEST_F(ValidatedRun, TranslatesWithTheBeamAndTheLengthPenaltyOfTheRecipe) {
  std::set<double> different;
  for (const auto& [beam, penalty] : {std::pair(1, 1.0), {6, 1.0}, {6, 0.0}}) {
    const std::string name = "model-" + std::to_string(different.size());
    options_.valid.beam = beam;
    options_.valid.length_penalty = penalty;
    whole_run(folder_ / name, options_);
    const auto log = read_metrics(folder_ / (name + "/metrics.jsonl"));
    const double wanted = chrf_of(name, {.beam = beam, .length_penalty = penalty});
    EXPECT_NEAR(*log.back().value("chrf"), wanted, 1e-4) << beam << " " << penalty;
    different.insert(wanted);
  }
  EXPECT_EQ(different.size(), 3u) << "the searches agree: the test shows nothing";
}

TEST_F(ValidatedRun, PrecisionChangesTheWeights) {
  if (!kernel::has_fast_bf16(Cpu{})) GTEST_SKIP() << "this processor has no fast bf16 products";
  options_.valid.metrics = {};
  const auto weights = [&](const std::string& name) {
    whole_run(folder_ / name, options_);
    return load_package(folder_ / name).model->parameters().values().values();
  };
  const auto first = weights("f32"), again = weights("again");
  options_.train.precision = Precision::bf16;
  const auto rounded = weights("bf16");
  EXPECT_EQ(first, again);
  EXPECT_NE(first, rounded);
  double apart = 0;
  for (size_t i = 0; i < first.size(); ++i)
    apart = std::max(apart, std::abs(first[i] - rounded[i]));
  EXPECT_LT(apart, 0.3);  // but the model learnt almost the same
}

}  // namespace
}  // namespace fovea
