#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace fovea {

// Philox4x32-10: a counter-based generator (Salmon et al., "Parallel random numbers: as easy as 1,
// 2, 3", 2011). The same counter and key give the same 128 bits on every machine and in any order.
// This makes dropout and resumed trainings repeatable.
struct PhiloxCounter {
  uint32_t v[4];
};
struct PhiloxKey {
  uint32_t v[2];
};

constexpr PhiloxCounter philox(PhiloxCounter c, PhiloxKey k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53u} * c.v[0], b = uint64_t{0xCD9E8D57u} * c.v[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.v[1] ^ k.v[0], static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.v[3] ^ k.v[1], static_cast<uint32_t>(a)}};
    k.v[0] += 0x9E3779B9u;  // 2^32 (φ − 1) with the golden ratio φ
    k.v[1] += 0xBB67AE85u;  // 2^32 (√3 − 1)
  }
  return c;
}

// A sequence of random numbers. (seed, stream) determine the values, which are the same on every
// platform. A copy continues from the same position. position() and seek() save and restore it.
class Random {
 public:
  explicit constexpr Random(uint64_t seed, uint64_t stream = 0)
      : key_{{static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)}}, stream_(stream) {}

  constexpr uint32_t bits32() {
    if (position_ % 4 == 0) fill();
    return value_.v[position_++ % 4];
  }
  constexpr uint64_t bits64() {
    const uint64_t low = bits32();
    return low | uint64_t{bits32()} << 32;
  }

  // Uniform in [0, 1), with 53 random bits.
  constexpr double uniform() { return static_cast<double>(bits64() >> 11) * 0x1p-53; }
  constexpr double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Uniform in {0, …, n−1}, without bias. REQUIRES: n > 0.
  constexpr uint64_t below(uint64_t n) {
    const uint64_t rest = (0 - n) % n;  // 2^64 mod n; numbers below it are drawn again, so no bias
    for (;;) {
      const uint64_t x = bits64();
      if (x >= rest) return x % n;
    }
  }

  // Standard normal. The method gives two numbers and discards one, so position() is the whole
  // state.
  double normal();

  // Shuffles a range (Fisher-Yates). Every order is equally likely.
  template <class Range>
  constexpr void shuffle(Range& range) {
    for (size_t i = range.size(); i > 1; --i) {
      using std::swap;
      swap(range[i - 1], range[static_cast<size_t>(below(i))]);
    }
  }

  constexpr uint64_t position() const { return position_; }  // number of 32-bit values drawn so far
  constexpr void seek(uint64_t position) {
    position_ = position;
    if (position_ % 4 != 0) fill();
  }

 private:
  constexpr void fill() {
    const uint64_t block = position_ / 4;
    value_ = philox({{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32),
                      static_cast<uint32_t>(stream_), static_cast<uint32_t>(stream_ >> 32)}},
                    key_);
  }

  PhiloxKey key_;
  uint64_t stream_, position_ = 0;
  PhiloxCounter value_{};
};

}  // namespace fovea
