#pragma once

#include <cstdint>

#include "ops/dropout.h"

namespace fovea::kernel {

// The factors of DropoutMask (ops/dropout_mask.h) in the layout that the threads of a warp need. A
// run is 8 · kLanes adjacent columns of a row. One call of the generator (a draw) gives lane i the
// factors of eight columns of the run: i + kLanes · k for k < 8. So neighbouring lanes have
// neighbouring columns. A row of at most 128 columns is one run of 16 lanes. A longer row consists
// of runs of 32 lanes.
class DropoutLane {
 public:
  static constexpr int kShort = 16, kLong = 32, kShortRow = 8 * kShort;

  __host__ __device__ explicit DropoutLane(const Dropout& dropout)
      : seed_{static_cast<uint32_t>(dropout.seed), static_cast<uint32_t>(dropout.seed >> 32)},
        step_(dropout.step), op_(dropout.op), step_at_(dropout.step_at),
        threshold_(static_cast<uint32_t>(dropout.rate * 65536.0f)),
        scale_(65536.0f / static_cast<float>(65536u - threshold_)) {}

  __host__ __device__ bool on() const { return threshold_ > 0; }  // if false, all factors are 1
  __host__ __device__ float scale() const { return scale_; }      // factor of kept elements

  // Sets out[k] to the factor of column 8 · kLanes · run + kLanes · k + lane. REQUIRES: if the row
  // has at most kShortRow columns, kLanes is kShort, otherwise kLong.
  template <int kLanes>
  __device__ void factors(int64_t row, int64_t run, int lane, float (&out)[8]) const {
    uint32_t words[4];
    draw(static_cast<uint64_t>((row << 20) + run) * kLanes + static_cast<uint64_t>(lane), words);
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      out[2 * w] = factor_of(words[w] & 0xFFFFu);
      out[2 * w + 1] = factor_of(words[w] >> 16);
    }
  }

  // The factor of one element. It costs as much as a call of factors(), which returns eight.
  __device__ float factor(int64_t row, int64_t col, int64_t cols) const {
    return cols <= kShortRow ? single<kShort>(row, col) : single<kLong>(row, col);
  }

 private:
  // Sets c to the output of Philox4x32-7 for one counter.
  __device__ void draw(uint64_t counter, uint32_t (&c)[4]) const {
    c[0] = static_cast<uint32_t>(counter);
    c[1] = static_cast<uint32_t>(counter >> 32);
    const uint32_t step = step_at_ ? static_cast<uint32_t>(__ldg(step_at_)) : step_;
    c[2] = step;
    c[3] = op_;
    uint32_t k0 = seed_[0] ^ op_ * 0x9E3779B9u, k1 = seed_[1] ^ step * 0x85EBCA6Bu;
#pragma unroll
    for (int round = 0; round < 7; ++round) {
      const uint64_t a = uint64_t{c[0]} * 0xD2511F53u, b = uint64_t{c[2]} * 0xCD9E8D57u;
      c[0] = static_cast<uint32_t>(b >> 32) ^ c[1] ^ k0;
      c[2] = static_cast<uint32_t>(a >> 32) ^ c[3] ^ k1;
      c[1] = static_cast<uint32_t>(b);
      c[3] = static_cast<uint32_t>(a);
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
  }
  __device__ float factor_of(uint32_t bits) const { return bits >= threshold_ ? scale_ : 0.0f; }

  template <int kLanes>
  __device__ float single(int64_t row, int64_t col) const {
    const int at = static_cast<int>(col % (8 * kLanes)), k = at / kLanes;
    uint32_t words[4];
    draw(static_cast<uint64_t>((row << 20) + col / (8 * kLanes)) * kLanes +
             static_cast<uint64_t>(at % kLanes),
         words);
    const uint32_t word = k < 4 ? (k < 2 ? words[0] : words[1]) : (k < 6 ? words[2] : words[3]);
    return factor_of(k % 2 == 0 ? word & 0xFFFFu : word >> 16);
  }

  uint32_t seed_[2], step_, op_;
  const int32_t* step_at_;
  uint32_t threshold_;
  float scale_;
};

}  // namespace fovea::kernel
