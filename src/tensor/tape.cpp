#include "tensor/tape.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/rounding.h"

namespace fovea {
namespace {
thread_local Tape* live_tape = nullptr;
// If backward() runs on this thread, the functions that it calls at its end, otherwise null.
thread_local std::vector<std::function<void()>>* end_of_backward = nullptr;
thread_local GradientMutation* live_mutation = nullptr;

// Returns the values of a contribution to a gradient after the mutation.
std::vector<double> apply_mutation(GradientMutation& mutation, std::vector<double> values,
                                   int64_t cols) {
  const auto before = values;
  switch (mutation.kind) {
    case GradientMutation::Kind::sign:
      for (double& v : values) v = -v;
      break;
    case GradientMutation::Kind::missing:
      std::ranges::fill(values, 0.0);
      break;
    case GradientMutation::Kind::scaled:
      for (double& v : values) v *= mutation.by;
      break;
    case GradientMutation::Kind::masked:  // sets the last row to 0, as if it were padding
      std::fill(values.end() - cols, values.end(), 0.0);
      break;
    case GradientMutation::Kind::one: {  // adds the root mean square of all to the middle one
      double sum = 0;
      for (const double v : values) sum += v * v;
      values[values.size() / 2] += std::sqrt(sum / static_cast<double>(values.size()));
      break;
    }
  }
  for (size_t i = 0; i < values.size(); ++i)  // smaller changes do not count as a mutation
    mutation.done = mutation.done || std::abs(values[i] - before[i]) > 1e-9;
  return values;
}

}  // namespace

GradientMutation::GradientMutation(Kind kind, int64_t at, double by) : kind(kind), at(at), by(by) {
  live_mutation = this;
}
GradientMutation::~GradientMutation() { live_mutation = nullptr; }

void GradientSlot::gather(const std::function<void(const Tensor& dx, OutputMode fold)>& write) {
  if (live_mutation && live_mutation->seen++ == live_mutation->at) {
    Tensor part(shape_, type_, device_);
    write(part, OutputMode::set);
    auto values = apply_mutation(*live_mutation, part.values(), part.cols());
    if (value_) {
      const auto old = value_.values();
      for (size_t i = 0; i < old.size(); ++i) values[i] += old[i];
      value_.assign(values);
    } else {
      value_ = Tensor::of(shape_, values, type_, device_);
    }
    return;
  }
  const OutputMode fold = value_ ? OutputMode::add : OutputMode::set;
  if (!value_) value_ = Tensor(shape_, type_, device_);
  write(value_, fold);
  RoundingNoise::change(value_);
}

void GradientSlot::at_last(std::function<void()> last) {
  if (last_.empty())  // so that complete() runs even if no pull reads this gradient
    Tape::at_the_end([slot = shared_from_this()] { slot->complete(); });
  last_.push_back(std::move(last));
}

void GradientSlot::complete() {
  for (const auto& last : std::exchange(last_, {})) last();
}

Tape::Tape() : outer_(live_tape) { live_tape = this; }
Tape::~Tape() { live_tape = outer_; }
bool Tape::live() { return live_tape != nullptr; }

void Tape::at_the_end(std::function<void()> last) {
  assert(end_of_backward);
  end_of_backward->push_back(std::move(last));
}

Tensor record(Tensor result, const std::vector<Tensor>& inputs,
              std::function<void(const Tensor&)> pull) {
  RoundingNoise::change(result);
  if (live_tape && std::ranges::any_of(inputs, &Tensor::needs_grad)) {
    result.track();
    live_tape->steps_.push_back({result.slot(), std::move(pull)});
  }
  return result;
}

void Tape::backward(const Tensor& loss, double seed) {
  assert(loss.elements() == 1);
  const Tensor start = Tensor::like(loss);
  start.fill(seed);
  backward(loss, start);
}

void Tape::backward(const Tensor& result, const Tensor& seed) {
  if (!result.needs_grad()) return;
  struct EndOfBackward {  // resets end_of_backward even if a pull throws
    explicit EndOfBackward(std::vector<std::function<void()>>& last) { end_of_backward = &last; }
    ~EndOfBackward() { end_of_backward = nullptr; }
  } const run(last_);
  result.slot()->gather([&](const Tensor& dx, OutputMode) { dx.copy_from(seed); });
  while (!steps_.empty()) {
    Step step = std::move(steps_.back());
    steps_.pop_back();
    step.slot->complete();
    if (!step.slot->holds()) continue;
    const Tensor grad = step.slot->value();
    step.pull(grad);
    step.slot->release();  // no remaining pull reads this gradient
  }
  for (const auto& last : last_) last();
  last_.clear();
}

}  // namespace fovea
