#include "decode/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"

namespace fovea {
namespace {

double uniform(uint64_t seed, const RandomDraw& which) {
  const auto stream =
      static_cast<uint64_t>(which.sentence) << 16 | static_cast<uint64_t>(which.sample & 0xffff);
  Random random(seed, stream);
  random.seek(static_cast<uint64_t>(which.step) * 4);
  return random.uniform();
}

}  // namespace

// Cuts words_ to the `top_k` most probable words. Then keeps the fewest of the most probable words
// that have at least `top_p` of the total probability of these words.
void Sampler::keep_probable() {
  const bool by_count = options_.top_k > 0 && options_.top_k < std::ssize(words_);
  if (!by_count && options_.top_p >= 1) return;
  std::ranges::sort(words_, [](const WordWeight& a, const WordWeight& b) {
    return a.weight != b.weight ? a.weight > b.weight : a.word < b.word;
  });
  if (by_count) words_.resize(static_cast<size_t>(options_.top_k));
  if (options_.top_p >= 1) return;
  double sum = 0, kept = 0;
  for (const WordWeight& w : words_) sum += w.weight;
  size_t n = 0;
  while (n < words_.size() && (n == 0 || kept < options_.top_p * sum)) kept += words_[n++].weight;
  words_.resize(n);
}

Candidate Sampler::draw(std::span<const double> scores, double log_sum,
                        std::span<const int32_t> banned, const RandomDraw& which) {
  words_.clear();
  double top = -std::numeric_limits<double>::infinity();
  for (size_t j = 0; j < scores.size(); ++j) {
    const auto word = static_cast<int32_t>(j);
    if (std::ranges::find(banned, word) != banned.end()) continue;
    words_.push_back({scores[j], word});
    top = std::max(top, words_.back().weight);
  }
  for (WordWeight& w : words_) w.weight = std::exp((w.weight - top) / options_.temperature);
  keep_probable();
  double sum = 0;
  for (const WordWeight& w : words_) sum += w.weight;
  double left = uniform(options_.seed, which) * sum;
  const WordWeight* chosen = &words_.front();
  for (const WordWeight& w : words_) {
    if (w.weight > 0) chosen = &w;
    if ((left -= w.weight) < 0) break;
  }
  const double log_prob = scores[chosen->word] - log_sum;
  return {chosen->word, std::min(0.0, log_prob)};
}

}  // namespace fovea
