#pragma once

#include <cstdint>

namespace fovea {

// Which elements a dropout keeps: a pure function of (seed, step, op, element), so that the
// gradient recomputes the mask instead of storing it and a resumed run draws the same masks.
struct Dropout {
  float rate = 0;  // 0 keeps everything
  uint64_t seed = 0;
  uint32_t step = 0, op = 0;
  const int32_t* step_at = nullptr;  // where a GPU reads the step instead, see Note [Replays]

  bool on() const { return rate > 0; }
};

// Where the dropouts of one training step get their keys from: while a DropoutScope lives, every
// call of dropout_key() gives the next op number. Without one, nothing is dropped: translating,
// validating and gradient checks do not make one.
class DropoutScope {
 public:
  DropoutScope(uint64_t seed, uint32_t step, const int32_t* step_at = nullptr);
  ~DropoutScope();
  DropoutScope(const DropoutScope&) = delete;
  DropoutScope& operator=(const DropoutScope&) = delete;

  uint32_t places() const { return next_; }  // keys that were given so far

 private:
  friend Dropout dropout_key(double rate);
  uint64_t seed_;
  uint32_t step_, next_ = 0;
  const int32_t* step_at_;
  DropoutScope* outer_;
};

// For tests of where a model drops out: while one lives, the dropout with this op number alone
// drops anything.
class OnlyDropout {
 public:
  explicit OnlyDropout(uint32_t op);
  ~OnlyDropout();
  OnlyDropout(const OnlyDropout&) = delete;
  OnlyDropout& operator=(const OnlyDropout&) = delete;
};

Dropout dropout_key(double rate);

}  // namespace fovea
