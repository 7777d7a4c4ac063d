#pragma once

#include <cstdint>

namespace fovea::kernel {

// Divides many numbers by one divisor, which is at least 1.
template <class Index>
class Divider;

// If dividend and divisor are below 2^31, a division is one multiplication and one shift (Granlund
// and Montgomery, PLDI 1994, section 4).
template <>
class Divider<uint32_t> {
 public:
  Divider() = default;
  explicit Divider(int64_t by) {
    const uint64_t divisor = static_cast<uint64_t>(by);
    while ((uint64_t{1} << shift_) < divisor) ++shift_;
    multiplier_ =
        static_cast<uint32_t>(((((uint64_t{1} << shift_) - divisor) << 32) / divisor) + 1);
  }
  __device__ uint32_t of(uint32_t n) const { return (__umulhi(n, multiplier_) + n) >> shift_; }

 private:
  uint32_t multiplier_ = 1, shift_ = 0;
};

template <>
class Divider<uint64_t> {
 public:
  Divider() = default;
  explicit Divider(int64_t by) : by_(static_cast<uint64_t>(by)) {}
  __device__ uint64_t of(uint64_t n) const { return n / by_; }

 private:
  uint64_t by_ = 1;
};

}  // namespace fovea::kernel
