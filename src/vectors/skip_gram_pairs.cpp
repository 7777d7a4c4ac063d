#include "vectors/skip_gram_pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea {
namespace {

constexpr double kScale = 4294967296.0;  // 2^32

uint32_t scaled(double share) {
  return static_cast<uint32_t>(std::clamp(share * kScale, 0.0, kScale - 1));
}

std::vector<double> noise_weights(const WordStream& text) {
  std::vector<double> weights;
  weights.reserve(text.counts.size());
  for (const int64_t count : text.counts)
    weights.push_back(std::pow(static_cast<double>(count), 0.75));  // U(w)^¾
  return weights;
}

}  // namespace

AliasTable::AliasTable(std::span<const double> weights) : columns_(weights.size()) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  const double mean = sum / static_cast<double>(weights.size());
  std::vector<double> left(weights.begin(), weights.end());
  std::vector<int32_t> small, large;
  for (size_t i = 0; i < left.size(); ++i) {
    left[i] /= mean;
    (left[i] < 1 ? small : large).push_back(static_cast<int32_t>(i));
    columns_[i] = {UINT32_MAX, static_cast<int32_t>(i)};
  }
  while (!small.empty() && !large.empty()) {  // a large weight fills the column of a small weight
    const int32_t s = small.back(), l = large.back();
    small.pop_back();
    columns_[s] = {scaled(left[s]), l};
    left[l] -= 1 - left[s];
    if (left[l] >= 1) continue;
    large.pop_back();
    small.push_back(l);
  }
}

PairSampler::PairSampler(const WordStream& text, const SkipGramOptions& options)
    : text_(text), window_(options.window), negatives_(options.negatives),
      noise_(noise_weights(text)) {
  const auto total = static_cast<double>(text.ids.size());
  kept_.reserve(text.counts.size());
  for (const int64_t count : text.counts) {
    const double f = static_cast<double>(count) / total;
    const bool frequent = options.subsample > 0 && f > options.subsample;
    kept_.push_back(frequent ? scaled(std::sqrt(options.subsample / f))  // 1 − P(w) = √(t / f(w))
                             : UINT32_MAX);
  }
}

void PairSampler::sample(int64_t first, int64_t last, uint64_t key, PairBuckets& buckets) const {
  FastRandom random(key);
  std::vector<int32_t> sentence;
  for (int64_t s = first; s < last; ++s) {
    sentence.clear();
    for (const int32_t word : text_.sentence(s))
      if (kept_[word] == UINT32_MAX || random.bits() >> 32 < kept_[word]) sentence.push_back(word);
    const int64_t n = static_cast<int64_t>(sentence.size());
    for (int64_t t = 0; t < n; ++t) {
      const auto reach = 1 + static_cast<int64_t>(random.bits() % static_cast<uint64_t>(window_));
      const int64_t end = std::min(n - 1, t + reach);
      for (int64_t c = std::max<int64_t>(0, t - reach); c <= end; ++c) {
        if (c == t) continue;
        buckets.add(sentence[t], sentence[c], true);
        for (int64_t k = 0; k < negatives_; ++k)
          if (const int32_t other = noise_.draw(random.bits()); other != sentence[c])
            buckets.add(sentence[t], other, false);
      }
    }
  }
}

}  // namespace fovea
