#include "train/step_graphs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "tensor/memory.h"
#include "tensor/tape.h"
#include "tensor/workspace.h"

namespace fovea {
namespace {

constexpr int64_t kMostGraphs = 128;
constexpr size_t kMostCached = 4096;

// The positions of the results of a step in one tensor: the loss, the guided loss, the norm of the
// gradient, and from kWords on log p of each target word.
constexpr int64_t kLoss = 0, kGuided = 1, kNorm = 2, kWords = 3;

// A scope for capturing a graph. A graph makes its own bf16 copies of parameters, which are valid
// only while it runs. So the captured step must not use an earlier copy, and no later step may use
// a copy that was made in this scope.
struct PrivateCopiesScope {
  PrivateCopiesScope() { parameters_changed(); }
  ~PrivateCopiesScope() { parameters_changed(); }
};

}  // namespace

StepGraphs::StepGraphs(const TrainedWeights& weights, Optimizer& optimizer,
                       const LossOptions& options)
    : weights_(weights), model_(weights_.model()), replayable_(model_.as<Replayable>()),
      optimizer_(optimizer), options_(options),
      capturing_(replayable_ && can_capture(model_.parameters().device())) {
  if (capturing_) inputs_ = std::make_unique<BatchInputs>(model_.parameters().device());
}

BatchCost StepGraphs::add_gradient(const PairBatch& batch, DropoutKey key) {
  return run(batch, key, nullptr).cost;
}

StepGraphs::StepResult StepGraphs::update(const PairBatch& batch, DropoutKey key, int64_t step,
                                          double lr) {
  const UpdateScale u{step, lr, 1 / static_cast<double>(batch.target_tokens)};
  return run(batch, key, &u);
}

StepGraphs::StepResult StepGraphs::run(const PairBatch& batch, DropoutKey key,
                                       const UpdateScale* update) {
  if (!inputs_) return run_unprepared(batch, key, update);
  const StagedBatch staged = stage(batch, key, update);
  CachedGraph& cached = cached_graph(staged);
  const bool again = cached.used > 0;
  cached.used = ++steps_;
  if (!cached.graph && again && may_capture()) capture(staged, cached);
  const Tensor results = cached.graph ? cached.results : allocate_results(staged);
  if (cached.graph) {
    cached.graph.replay();
    if (update || weights_.adapts()) parameters_changed();
    ++replays_;
  } else {
    compute(staged, results);
  }
  const std::vector<double> values = results.values();
  const ComputedLoss computed{.loss = values[kLoss],
                              .guided = values[kGuided],
                              .log_likelihood = std::span(values).subspan(kWords)};
  const bool finite = std::isfinite(computed.loss);
  return {cost_from(batch, options_, computed), finite ? values[kNorm] : std::nan("")};
}

StepGraphs::StepResult StepGraphs::run_unprepared(const PairBatch& batch, DropoutKey key,
                                                  const UpdateScale* update) {
  if (update) weights_.store().gradients().fill(0);
  StepResult result{fovea::add_gradient(weights_, batch, options_, key), std::nan("")};
  if (update && std::isfinite(result.cost.loss)) result.norm = optimizer_.update(*update);
  if (update) weights_.changed();
  return result;
}

StepGraphs::StagedBatch StepGraphs::stage(const PairBatch& batch, DropoutKey key,
                                          const UpdateScale* update) {
  StagedBatch staged{key, {}, {}, {}};
  {
    const BatchInputs::Scope scope(*inputs_);
    staged.step =
        Tensor::of(std::vector{static_cast<int32_t>(key.drawn)}, model_.parameters().device());
    if (update) staged.update = optimizer_.note(*update);
    staged.prepared =
        replayable_->prepare(training_batch(batch, options_), BatchPadding::few_sizes);
  }
  inputs_->send();
  return staged;
}

StepGraphs::CachedGraph& StepGraphs::cached_graph(const StagedBatch& staged) {
  std::vector<int64_t> sizes = inputs_->sizes();
  sizes.insert(sizes.end(), staged.prepared->sizes.begin(), staged.prepared->sizes.end());
  sizes.push_back(static_cast<int64_t>(staged.key.seed));
  if (cache_.size() >= kMostCached)
    std::erase_if(cache_, [](const auto& entry) { return !entry.second.graph; });
  return cache_[sizes];
}

Tensor StepGraphs::allocate_results(const StagedBatch& staged) const {
  const ParameterStore& store = model_.parameters();
  return Tensor::zeros({kWords + staged.prepared->scores}, store.type(), store.device());
}

// The arena of the graphs needs about as much memory as a step without a graph, in addition to the
// memory of that step. If memory could become short, the steps are so large that graphs would not
// make them faster.
bool StepGraphs::may_capture() const {
  const Device device = model_.parameters().device();
  return capturing_ && !inputs_->overflowed() &&
         2 * memory_use(device).reserved < memory_at_most(device);
}

// Makes the part of a step that is captured as a graph. stage() has done the work of the host.
void StepGraphs::compute(const StagedBatch& staged, const Tensor& results) {
  if (staged.update) weights_.store().gradients().fill(0);
  const DropoutScope dropout(staged.key.seed, static_cast<uint32_t>(staged.key.drawn),
                             staged.step.data<int32_t>());
  weights_.before_loss();
  Tape tape;
  const BatchLoss loss =
      replayable_->loss_of(*staged.prepared, options_.label_smoothing, options_.guided_weight);
  tape.backward(loss.surrogate ? loss.loss + loss.surrogate : loss.loss);
  weights_.after_gradient();
  results.window(kLoss, 1).copy_from(loss.loss);
  if (loss.guided) results.window(kGuided, 1).copy_from(loss.guided);
  results.window(kWords, staged.prepared->scores).copy_from(loss.log_likelihood);
  if (!staged.update) return;
  optimizer_.update(staged.update, loss.loss, results.window(kNorm, 1));
  weights_.changed();
}

void StepGraphs::capture(const StagedBatch& staged, CachedGraph& cached) {
  if (graphs_ == kMostGraphs) remove_oldest();
  cached.results = allocate_results(staged);
  {
    const PrivateCopiesScope copies;
    cached.graph =
        Graph::captured(model_.parameters().device(), [&] { compute(staged, cached.results); });
  }
  if (cached.graph) {
    ++graphs_;
    captured_ = true;
  } else {
    capturing_ = false;
    // Frees the memory that the aborted capture used.
    if (graphs_ == 0) release_memory(model_.parameters().device());
  }
}

void StepGraphs::release() {
  cache_.clear();
  graphs_ = 0;
  captured_ = false;
  release_memory(model_.parameters().device());
}

bool StepGraphs::disable_graphs() {
  disable_capture();
  const bool any = captured_;
  release();
  return any;
}

void StepGraphs::remove_oldest() {
  const auto age = [this](const auto& entry) {
    return entry.second.graph ? steps_ - entry.second.used : -1;
  };
  if (const auto oldest = std::ranges::max_element(cache_, {}, age); oldest->second.graph)
    cache_.erase(oldest);
  graphs_ =
      std::ranges::count_if(cache_, [](const auto& entry) { return bool{entry.second.graph}; });
}

}  // namespace fovea
