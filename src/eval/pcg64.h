#pragma once

#include <cstdint>

namespace fovea {

// The random number generator PCG XSL RR 128/64 by O'Neill, with the initial state of NumPy's
// default_rng(12345). sacreBLEU uses this generator and seed for confidence intervals and p-values.
// So our generator must give the same numbers.
class Pcg64 {
 public:
  static constexpr int kSeed = 12345;

  uint64_t next64() {
    state_ = state_ * kMultiplier + kIncrement;
    auto high = static_cast<uint64_t>(state_ >> 64), low = static_cast<uint64_t>(state_);
    auto turn = static_cast<unsigned>(high >> 58);
    uint64_t mixed = high ^ low;
    return mixed >> turn | mixed << ((64 - turn) & 63);
  }

  // Returns 32 random bits: the low half of a 64-bit number, and in the next call the high half of
  // this number.
  uint32_t next32() {
    if (has_half_) {
      has_half_ = false;
      return half_;
    }
    uint64_t both = next64();
    half_ = static_cast<uint32_t>(both >> 32);
    has_half_ = true;
    return static_cast<uint32_t>(both);
  }

  // Returns a uniform random number in [0, n), without bias (Lemire 2019). REQUIRES: n > 0.
  uint32_t below(uint32_t n) {
    uint64_t product = uint64_t{next32()} * n;
    if (static_cast<uint32_t>(product) < n) {
      uint32_t threshold = (0 - n) % n;
      while (static_cast<uint32_t>(product) < threshold) product = uint64_t{next32()} * n;
    }
    return static_cast<uint32_t>(product >> 32);
  }

 private:
  __extension__ using uint128 = unsigned __int128;
  static constexpr uint128 kMultiplier = uint128{0x2360ed051fc65da4} << 64 | 0x4385df649fccf645;
  static constexpr uint128 kIncrement = uint128{0xc9c7353e6e2b1f28} << 64 | 0x7d761f2d4027fae7;

  uint128 state_ = uint128{0x1905e0335aae9634} << 64 | 0x9199b0d09775add5;
  uint32_t half_ = 0;
  bool has_half_ = false;
};

// A stream of random bits: 32 bits of each random number, the least significant bit first.
class CoinStream {
 public:
  bool toss() {
    if (left_ == 0) {
      bits_ = generator_.next32();
      left_ = 32;
    }
    bool heads = bits_ & 1;
    bits_ >>= 1;
    --left_;
    return heads;
  }

 private:
  Pcg64 generator_;
  uint32_t bits_ = 0;
  int left_ = 0;
};

}  // namespace fovea
