#pragma once

#include <cstdint>

namespace fovea {

// The key of one dropout operation. Whether an element is kept depends only on (seed, step, op,
// index of the element). So the backward pass recomputes the mask instead of storing it, and a
// resumed run has the same masks.
struct Dropout {
  float rate = 0;  // probability of dropping an element
  uint64_t seed = 0;
  uint32_t step = 0, op = 0;
  const int32_t* step_at = nullptr;  // GPU: if given, the address of the step (Note [Replays])

  bool on() const { return rate > 0; }
};

// The source of dropout keys for one training step. While a DropoutScope lives, each call of
// dropout_key() on its thread returns a key with the next op number. If there is no scope, nothing
// is dropped. Translation, validation and gradient checks create no scope.
class DropoutScope {
 public:
  DropoutScope(uint64_t seed, uint32_t step, const int32_t* step_at = nullptr);
  ~DropoutScope();
  DropoutScope(const DropoutScope&) = delete;
  DropoutScope& operator=(const DropoutScope&) = delete;

  uint32_t places() const { return next_; }  // the number of keys returned so far

 private:
  friend Dropout dropout_key(double rate);
  uint64_t seed_;
  uint32_t step_, next_ = 0;
  const int32_t* step_at_;
  DropoutScope* outer_;
};

// A test hook to find the dropout operations of a model. While an OnlyDropout lives, only the
// dropout operation with this op number drops elements.
class OnlyDropout {
 public:
  explicit OnlyDropout(uint32_t op);
  ~OnlyDropout();
  OnlyDropout(const OnlyDropout&) = delete;
  OnlyDropout& operator=(const OnlyDropout&) = delete;
};

Dropout dropout_key(double rate);

}  // namespace fovea
