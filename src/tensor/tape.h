#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// Where the gradient of a tensor gathers. It outlives the tensor's values, so that a result whose
// values no gradient needs gives its memory back at once.
class Slot : public std::enable_shared_from_this<Slot> {
 public:
  Slot(Shape shape, Type type, Device device)
      : shape_(std::move(shape)), type_(type), device_(device) {}
  explicit Slot(Tensor bound)  // a parameter: what flows in is always added
      : shape_(bound.shape()), type_(bound.type()), device_(bound.device()), value_(bound),
        bound_(true) {}

  bool holds() const { return static_cast<bool>(value_); }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return shape_; }
  void release() {
    if (!bound_) value_ = {};
  }

  // Calls write(dx, fold): the kernel sets dx, or adds to it where something flowed in before.
  void gather(const std::function<void(const Tensor& dx, Fold fold)>& write);

  // For a pull: `last` will gather here when all other pulls that do so have run.
  void at_last(std::function<void()> last);
  void complete();  // runs these

 private:
  Shape shape_;
  Type type_;
  Device device_;
  Tensor value_;
  bool bound_ = false;
  std::vector<std::function<void()>> last_;
};

// While a Tape lives, every operation on a tensor that needs a gradient is recorded on it, in
// the order it ran; backward() runs them in reverse. No tape, no gradient: translation and
// validation simply do not make one.
class Tape {
 public:
  Tape();
  ~Tape();
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // Gradient of `seed` · loss (a tensor of one element) into every slot that leads to it. With a
  // tensor as seed: of the sum over all entries of seed × loss.
  void backward(const Tensor& loss, double seed = 1);
  void backward(const Tensor& result, const Tensor& seed);

  static bool live();
  // For a pull: `last` will run when backward() has come to its end.
  static void at_the_end(std::function<void()> last);

 private:
  friend Tensor record(Tensor, const std::vector<Tensor>&, std::function<void(const Tensor&)>);
  struct Step {
    std::shared_ptr<Slot> slot;
    std::function<void(const Tensor& grad)> pull;
  };
  std::vector<Step> steps_;
  std::vector<std::function<void()>> last_;
  Tape* outer_;
};

// Returns `result`; if a tape is live and an input needs a gradient, `pull` will later be given
// the gradient of `result` and must gather into the slot of each input what flows back to it
// (inputs without a slot are skipped).
Tensor record(Tensor result, const std::vector<Tensor>& inputs,
              std::function<void(const Tensor& grad)> pull);

// Gathers into `slot` if there is one.
inline void gather(const std::shared_ptr<Slot>& slot,
                   const std::function<void(const Tensor& dx, Fold fold)>& write) {
  if (slot) slot->gather(write);
}

// Note [Mutants]
// A gradient check is worth something only if it fails on a wrong gradient. While a Mutation
// lives, the n-th contribution that flows into any slot is spoilt in the way named: tests count
// how many of all such mutants their checks catch.
struct Mutation {
  enum class Kind { sign, missing, scaled, masked, one };
  Mutation(Kind kind, int64_t at, double by = 1.01);
  ~Mutation();
  Mutation(const Mutation&) = delete;
  Mutation& operator=(const Mutation&) = delete;

  Kind kind;
  int64_t at;
  double by;          // that scaled multiplies with
  int64_t seen = 0;   // contributions so far
  bool done = false;  // the n-th was reached and changed something
};

}  // namespace fovea
