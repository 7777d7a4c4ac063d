#include "train/cost_estimate.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"
#include "ops/matmul.h"
#include "tensor/memory.h"
#include "train/optimizer.h"
#include "train/step_graphs.h"

namespace fovea {
namespace {

constexpr int64_t kMeasured = 5;  // number of batches measured

// Returns the index of the batch with the most tokens (source and target together). It determines
// the memory that training needs.
int64_t largest(const BatchPlan& plan, const Corpus& text) {
  int64_t at = 0, most = 0;
  for (int64_t i = 0; i < plan.size(); ++i) {
    int64_t tokens = 0;
    for (const int64_t pair : plan.members(i))
      tokens += text.source_length(pair) + text.target_length(pair) + 2;
    if (tokens > most) {
      most = tokens;
      at = i;
    }
  }
  return at;
}

}  // namespace

CostEstimate estimate(Model& model, const Corpus& text, const TrainOptions& options) {
  const PrecisionScope precision(options.train.precision);
  const BatchPlan plan(text, options.batch, 0);
  const LoopOptions& loop = options.train;
  Optimizer optimizer(model.parameters(), options.optimizer);
  StepGraphs steps(model, optimizer, loop.loss());
  const int64_t measured = std::min(kMeasured, plan.size());
  // A graph is captured at the second batch of a size, so warm-up needs two rounds.
  const int64_t before = can_capture(model.parameters().device()) ? 2 : 1;
  const int64_t all = 1 + (before + 1) * measured;
  log_info("measuring {} updates of a model with {} parameters, the largest batch first", all,
           with_commas(model.parameters().size()));
  Progress progress("measuring", all, {.unit = "updates"});
  const auto update = [&](int64_t batch, int64_t step) {
    const PairBatch next = plan.batch(batch);
    steps.update(next, {1, step}, step, 1e-9);
    progress.set(step);
    return next.target_tokens;
  };
  update(largest(plan, text), 1);
  int64_t step = 1;
  for (int64_t i = 0; i < before * measured; ++i) update(i % measured, ++step);
  const auto begin = std::chrono::steady_clock::now();
  int64_t words = 0;
  for (int64_t i = 0; i < measured; ++i) words += update(i, ++step);
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const double size = static_cast<double>(model.parameters().size());
  CostEstimate e;
  e.parameters = model.parameters().size();
  e.batches = plan.size();
  e.updates = (plan.size() + loop.accumulate - 1) / loop.accumulate;
  e.words = static_cast<double>(words * loop.accumulate) / static_cast<double>(measured);
  e.update_seconds = seconds * static_cast<double>(loop.accumulate) / static_cast<double>(measured);
  e.words_per_second = static_cast<double>(words) / seconds;
  e.memory_bytes = static_cast<double>(memory_use(model.parameters().device()).peak);
  e.checkpoint_bytes = 4 * size * (options.optimizer.ema > 0 ? 4 : 3);
  return e;
}

}  // namespace fovea
