#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// The gradient of one tensor. Several operations may contribute to it, and the slot sums their
// contributions. A pull is the function of an operation that computes its contributions. A slot
// does not keep the tensor's values alive: if no pull needs them, their memory is free immediately.
class GradientSlot : public std::enable_shared_from_this<GradientSlot> {
 public:
  GradientSlot(Shape shape, ElementType type, Device device)
      : shape_(std::move(shape)), type_(type), device_(device) {}
  explicit GradientSlot(Tensor bound)  // for a parameter: contributions are added to `bound`
      : shape_(bound.shape()), type_(bound.type()), device_(bound.device()), value_(bound),
        bound_(true) {}

  bool holds() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return shape_; }
  void release() {
    if (!bound_) value_ = {};
  }

  // Adds a contribution by a call of write(dx, fold). If it is the first, `fold` says that `write`
  // must set dx, otherwise that `write` must add to dx.
  void gather(const std::function<void(const Tensor& dx, OutputMode fold)>& write);

  // A pull calls this function. `last` runs after all pulls that contribute to this slot, and adds
  // a contribution, too.
  void at_last(std::function<void()> last);
  void complete();  // runs the functions of at_last()

 private:
  Shape shape_;
  ElementType type_;
  Device device_;
  Tensor value_;
  bool bound_ = false;
  std::vector<std::function<void()>> last_;
};

// A record of operations for the backward pass. While a Tape exists on a thread, it records every
// operation on a tensor that needs a gradient, in order. backward() runs the records in reverse.
// Translation and validation have no Tape, so they compute no gradients.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Computes gradients: adds the gradient of seed · loss to the slot of every tensor on which the
  // loss depends. The loss has one element. If the seed is a tensor, the gradient is that of the
  // sum of all elements of seed × result.
  void backward(const Tensor& loss, double seed = 1);
  void backward(const Tensor& result, const Tensor& seed);

  static bool live();
  // A pull calls this function. backward() calls `last` at its end.
  static void at_the_end(std::function<void()> last);

 private:
  friend Tensor record(Tensor, const std::vector<Tensor>&, std::function<void(const Tensor&)>);
  struct Step {
    std::shared_ptr<GradientSlot> slot;
    std::function<void(const Tensor& grad)> pull;
  };
  std::vector<Step> steps_;
  std::vector<std::function<void()>> last_;
  Tape* outer_;
};

// Returns `result`. If a tape exists and an input needs a gradient, backward() later calls `pull`
// with the gradient of `result`. `pull` must then contribute to the gradient slot of each input; it
// skips inputs without a slot.
Tensor record(Tensor result, const std::vector<Tensor>& inputs,
              std::function<void(const Tensor& grad)> pull);

// Calls slot->gather(write) if there is a slot.
inline void gather(const std::shared_ptr<GradientSlot>& slot,
                   const std::function<void(const Tensor& dx, OutputMode fold)>& write) {
  if (slot) slot->gather(write);
}

// Note [Mutants]
// A gradient check proves something only if it fails on a wrong gradient. While a GradientMutation
// exists, it changes the n-th contribution to any slot as its kind says. A mutant is one such
// change. Tests count how many of all mutants their checks detect.
struct GradientMutation {
  enum class Kind { sign, missing, scaled, masked, one };
  GradientMutation(Kind kind, int64_t at, double by = 1.01);
  ~GradientMutation();
  GradientMutation(const GradientMutation&) = delete;
  GradientMutation& operator=(const GradientMutation&) = delete;

  Kind kind;
  int64_t at;
  double by;          // the factor of Kind::scaled
  int64_t seen = 0;   // number of contributions so far, to all slots
  bool done = false;  // whether the n-th contribution has been changed
};

}  // namespace fovea
