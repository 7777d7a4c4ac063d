#include "tensor/tape.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "tensor/rounding.h"

namespace fovea {
namespace {
thread_local Tape* live_tape = nullptr;
thread_local std::vector<std::function<void()>>* running = nullptr;  // what backward() ends with
thread_local Mutation* live_mutation = nullptr;

// What the contribution becomes in a mutant.
std::vector<double> spoil(Mutation& mutation, std::vector<double> values, int64_t cols) {
  const auto before = values;
  switch (mutation.kind) {
    case Mutation::Kind::sign:
      for (double& v : values) v = -v;
      break;
    case Mutation::Kind::missing:
      std::ranges::fill(values, 0.0);
      break;
    case Mutation::Kind::scaled:
      for (double& v : values) v *= mutation.by;
      break;
    case Mutation::Kind::masked:  // the last row is taken for padding
      std::fill(values.end() - cols, values.end(), 0.0);
      break;
    case Mutation::Kind::one: {  // a number in the middle is off by as much as all are large
      double sum = 0;
      for (const double v : values) sum += v * v;
      values[values.size() / 2] += std::sqrt(sum / static_cast<double>(values.size()));
      break;
    }
  }
  for (size_t i = 0; i < values.size(); ++i)  // what is smaller is rounding, and no mutant
    mutation.done = mutation.done || std::abs(values[i] - before[i]) > 1e-9;
  return values;
}

}  // namespace

Mutation::Mutation(Kind kind, int64_t at, double by) : kind(kind), at(at), by(by) {
  live_mutation = this;
}
Mutation::~Mutation() { live_mutation = nullptr; }

void Slot::gather(const std::function<void(const Tensor& dx, Fold fold)>& write) {
  if (live_mutation && live_mutation->seen++ == live_mutation->at) {
    Tensor part(shape_, type_, device_);
    write(part, Fold::set);
    auto values = spoil(*live_mutation, part.values(), part.cols());
    if (value_) {
      const auto old = value_.values();
      for (size_t i = 0; i < old.size(); ++i) values[i] += old[i];
      value_.assign(values);
    } else {
      value_ = Tensor::of(shape_, values, type_, device_);
    }
    return;
  }
  const Fold fold = value_ ? Fold::add : Fold::set;
  if (!value_) value_ = Tensor(shape_, type_, device_);
  write(value_, fold);
  Rounding::change(value_);
}

void Slot::at_last(std::function<void()> last) {
  if (last_.empty())  // where no pull asks for the gradient
    Tape::at_the_end([slot = shared_from_this()] { slot->complete(); });
  last_.push_back(std::move(last));
}

void Slot::complete() {
  for (const auto& last : std::exchange(last_, {})) last();
}

Tape::Tape() : outer_(live_tape) { live_tape = this; }
Tape::~Tape() { live_tape = outer_; }
bool Tape::live() { return live_tape != nullptr; }

void Tape::at_the_end(std::function<void()> last) {
  assert(running);
  running->push_back(std::move(last));
}

Tensor record(Tensor result, const std::vector<Tensor>& inputs,
              std::function<void(const Tensor&)> pull) {
  Rounding::change(result);
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
  struct Running {  // also when a pull throws
    explicit Running(std::vector<std::function<void()>>& last) { running = &last; }
    ~Running() { running = nullptr; }
  } const run(last_);
  result.slot()->gather([&](const Tensor& dx, Fold) { dx.copy_from(seed); });
  while (!steps_.empty()) {
    Step step = std::move(steps_.back());
    steps_.pop_back();
    step.slot->complete();
    if (!step.slot->holds()) continue;
    const Tensor grad = step.slot->value();
    step.pull(grad);
    step.slot->release();  // everything that could read it has run
  }
  for (const auto& last : last_) last();
  last_.clear();
}

}  // namespace fovea
