#pragma once

#include <cstdint>

#include "ops/dropout.h"

namespace fovea::kernel {

// The factors of a dropout: 0 or 1 / (1 − rate). They are computed in runs of 8 · kLanes elements.
// The generator is Philox4x32-7 (Salmon et al. 2011; seven rounds pass all their tests). Its key
// comes from (seed, step, op), its counter from the index of the run. Each 32-bit random word
// serves two elements.
class DropoutMask {
 public:
  explicit DropoutMask(const Dropout& dropout)
      : key_{static_cast<uint32_t>(dropout.seed) ^ dropout.op * 0x9E3779B9u,
             static_cast<uint32_t>(dropout.seed >> 32) ^ dropout.step * 0x85EBCA6Bu},
        extra_{dropout.step, dropout.op},
        threshold_(static_cast<uint32_t>(dropout.rate * 65536.0f)),
        scale_(65536.0f / static_cast<float>(65536u - threshold_)) {}

  // Sets `out` to the factors of the run with index `run`, 8 · kLanes elements.
  template <int kLanes, class T>
  void factors(int64_t run, T* out) const {
    static_assert((kLanes & (kLanes - 1)) == 0);  // so that adding i to `low` changes only low bits
    uint32_t c0[kLanes], c1[kLanes], c2[kLanes], c3[kLanes];
    const uint64_t counter = static_cast<uint64_t>(run) * kLanes;
    const auto low = static_cast<uint32_t>(counter), high = static_cast<uint32_t>(counter >> 32);
#pragma omp simd
    for (int i = 0; i < kLanes; ++i) {
      c0[i] = low + static_cast<uint32_t>(i);
      c1[i] = high;
      c2[i] = extra_[0];
      c3[i] = extra_[1];
    }
    uint32_t k0 = key_[0], k1 = key_[1];
    for (int round = 0; round < 7; ++round) {
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) {
        const uint64_t a = uint64_t{c0[i]} * 0xD2511F53u, b = uint64_t{c2[i]} * 0xCD9E8D57u;
        const uint32_t n0 = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ k0;
        const uint32_t n2 = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ k1;
        c1[i] = static_cast<uint32_t>(b);
        c3[i] = static_cast<uint32_t>(a);
        c0[i] = n0;
        c2[i] = n2;
      }
      k0 += 0x9E3779B9u;
      k1 += 0xBB67AE85u;
    }
    const T scale = static_cast<T>(scale_);
    const uint32_t* words[] = {c0, c1, c2, c3};
    for (int w = 0; w < 4; ++w)
#pragma omp simd
      for (int i = 0; i < kLanes; ++i) {
        out[(2 * w) * kLanes + i] = (words[w][i] & 0xFFFFu) >= threshold_ ? scale : T{0};
        out[(2 * w + 1) * kLanes + i] = (words[w][i] >> 16) >= threshold_ ? scale : T{0};
      }
  }

 private:
  uint32_t key_[2], extra_[2];
  uint32_t threshold_;
  float scale_;
};

// The factors of one row. Each row has 2^20 run indices of its own. So any thread can compute the
// factors of a row without other rows, and no two rows use the same random numbers.
template <int kLanes, class T>
void dropout_runs(const DropoutMask& mask, int64_t row, int64_t cols, T* factors) {
  constexpr int64_t kRun = 8 * kLanes;
  T run[kRun];
  for (int64_t b = 0; b * kRun < cols; ++b) {
    const int64_t n = cols - b * kRun;
    mask.template factors<kLanes>((row << 20) + b, n >= kRun ? factors + b * kRun : run);
    for (int64_t i = 0; n < kRun && i < n; ++i) factors[b * kRun + i] = run[i];
  }
}

// The factors of one row. Longer runs compute more factors in parallel; shorter runs compute fewer
// unused factors for short rows.
template <class T>
void dropout_row(const DropoutMask& mask, int64_t row, int64_t cols, T* factors) {
  if (cols <= 128)
    dropout_runs<16>(mask, row, cols, factors);
  else
    dropout_runs<32>(mask, row, cols, factors);
}

}  // namespace fovea::kernel
