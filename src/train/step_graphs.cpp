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
constexpr size_t kMostKnown = 4096;

// Where among the results of a step what stands: the loss, the guided loss, the gradient's norm,
// log p of each word.
constexpr int64_t kLoss = 0, kGuided = 1, kNorm = 2, kWords = 3;

// A graph makes copies of parameters in bf16 that are there only while it runs.
struct CopiesOfItsOwn {
  CopiesOfItsOwn() { parameters_changed(); }
  ~CopiesOfItsOwn() { parameters_changed(); }
};

}  // namespace

StepGraphs::StepGraphs(Model& model, Optimizer& optimizer, const LossOptions& options)
    : model_(model), optimizer_(optimizer), options_(options),
      capturing_(can_capture(model.parameters().device())) {
  if (capturing_) feed_ = std::make_unique<Feed>(model.parameters().device());
}

Cost StepGraphs::add_gradient(const PairBatch& batch, DropoutKey key) {
  return learn(batch, key, nullptr).cost;
}

StepGraphs::Learnt StepGraphs::update(const PairBatch& batch, DropoutKey key, int64_t step,
                                      double lr) {
  const Update u{step, lr, 1 / static_cast<double>(batch.target_tokens)};
  return learn(batch, key, &u);
}

StepGraphs::Learnt StepGraphs::learn(const PairBatch& batch, DropoutKey key, const Update* update) {
  const Fed fed = feed_ ? feed(batch, key, update) : Fed{};
  if (!fed.lesson) return learn_unprepared(batch, key, update);
  Known& step = known(fed);
  const bool again = step.used > 0;
  step.used = ++steps_;
  if (!step.graph && again && may_capture()) capture(fed, step);
  const Tensor results = step.graph ? step.results : room_for_results(fed);
  if (step.graph) {
    step.graph.replay();
    if (update) parameters_changed();
    ++replays_;
  } else {
    work(fed, results);
  }
  const std::vector<double> found = results.values();
  const Computed computed{.loss = found[kLoss],
                          .guided = found[kGuided],
                          .log_likelihood = std::span(found).subspan(kWords)};
  const bool finite = std::isfinite(computed.loss);
  return {cost_from(batch, options_, computed), finite ? found[kNorm] : std::nan("")};
}

StepGraphs::Learnt StepGraphs::learn_unprepared(const PairBatch& batch, DropoutKey key,
                                                const Update* update) {
  if (update) model_.parameters().gradients().fill(0);
  Learnt learnt{fovea::add_gradient(model_, batch, options_, key), std::nan("")};
  if (update && std::isfinite(learnt.cost.loss)) learnt.norm = optimizer_.update(*update);
  return learnt;
}

StepGraphs::Fed StepGraphs::feed(const PairBatch& batch, DropoutKey key, const Update* update) {
  Fed fed{key, {}, {}, {}};
  {
    const Feed::Scope scope(*feed_);
    fed.step =
        Tensor::of(std::vector{static_cast<int32_t>(key.drawn)}, model_.parameters().device());
    if (update) fed.update = optimizer_.note(*update);
    fed.lesson = model_.prepare(lesson_of(batch, options_), Fill::few_sizes);
  }
  if (fed.lesson)
    feed_->send();
  else
    feed_ = nullptr;  // the model's loss is in one piece
  return fed;
}

StepGraphs::Known& StepGraphs::known(const Fed& fed) {
  std::vector<int64_t> sizes = feed_->sizes();
  sizes.insert(sizes.end(), fed.lesson->sizes.begin(), fed.lesson->sizes.end());
  sizes.push_back(static_cast<int64_t>(fed.key.seed));
  if (known_.size() >= kMostKnown)
    std::erase_if(known_, [](const auto& step) { return !step.second.graph; });
  return known_[sizes];
}

Tensor StepGraphs::room_for_results(const Fed& fed) const {
  const ParameterStore& store = model_.parameters();
  return Tensor::zeros({kWords + fed.lesson->scores}, store.type(), store.device());
}

// A graph needs as much memory again as its step. Steps so large that this could be scarce gain
// nothing from graphs.
bool StepGraphs::may_capture() const {
  const Device device = model_.parameters().device();
  return capturing_ && !feed_->overflowed() &&
         2 * memory_use(device).reserved < memory_at_most(device);
}

// What is captured: the host's part is done in feed().
void StepGraphs::work(const Fed& fed, const Tensor& results) {
  if (fed.update) model_.parameters().gradients().fill(0);
  const DropoutScope dropout(fed.key.seed, static_cast<uint32_t>(fed.key.drawn),
                             fed.step.data<int32_t>());
  Tape tape;
  const BatchLoss found =
      model_.loss_of(*fed.lesson, options_.label_smoothing, options_.guided_weight);
  tape.backward(found.surrogate ? found.loss + found.surrogate : found.loss);
  results.window(kLoss, 1).copy_from(found.loss);
  if (found.guided) results.window(kGuided, 1).copy_from(found.guided);
  results.window(kWords, fed.lesson->scores).copy_from(found.log_likelihood);
  if (fed.update) optimizer_.update(fed.update, found.loss, results.window(kNorm, 1));
}

void StepGraphs::capture(const Fed& fed, Known& known) {
  if (graphs_ == kMostGraphs) forget_oldest();
  known.results = room_for_results(fed);
  {
    const CopiesOfItsOwn copies;
    known.graph = Graph::captured(model_.parameters().device(), [&] { work(fed, known.results); });
  }
  if (known.graph) {
    ++graphs_;
    captured_ = true;
  } else {
    capturing_ = false;
    if (graphs_ == 0) release_memory(model_.parameters().device());  // what it took until it failed
  }
}

void StepGraphs::release() {
  known_.clear();
  graphs_ = 0;
  captured_ = false;
  release_memory(model_.parameters().device());
}

bool StepGraphs::give_up_graphs() {
  capture_no_more();
  const bool any = captured_;
  release();
  return any;
}

void StepGraphs::forget_oldest() {
  const auto age = [this](const auto& step) {
    return step.second.graph ? steps_ - step.second.used : -1;
  };
  if (const auto oldest = std::ranges::max_element(known_, {}, age); oldest->second.graph)
    known_.erase(oldest);
  graphs_ = std::ranges::count_if(known_, [](const auto& step) { return bool{step.second.graph}; });
}

}  // namespace fovea
