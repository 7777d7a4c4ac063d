#include "vectors/neighbours.h"

#include <algorithm>
#include <cmath>

#include "base/edit_distance.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kLanes = 8;  // number of independent sums, which the compiler vectorizes

double dot(std::span<const float> a, std::span<const float> b) {
  float lanes[kLanes] = {};
  const size_t whole = a.size() - a.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes)
    for (size_t j = 0; j < kLanes; ++j) lanes[j] += a[i + j] * b[i + j];
  for (size_t i = whole; i < a.size(); ++i) lanes[i - whole] += a[i] * b[i];
  double sum = 0;
  for (const float lane : lanes) sum += static_cast<double>(lane);
  return sum;
}

float inverse_norm(std::span<const float> v) {
  double squares = 0;  // in double, because squares of floats may overflow
  for (const float x : v) squares += static_cast<double>(x) * static_cast<double>(x);
  return squares > 0 ? static_cast<float>(1 / std::sqrt(squares)) : 0.0f;
}

std::u32string code_points_of(std::string_view word) {
  std::u32string letters;
  for (const char32_t c : code_points(word)) letters += c;
  return letters;
}

}  // namespace

NeighbourSearch::NeighbourSearch(const WordVectors& vectors) : vectors_(vectors) {
  inverse_norms_.reserve(vectors.words());
  for (int64_t i = 0; i < vectors.words(); ++i)
    inverse_norms_.push_back(inverse_norm(vectors.vector(i)));
}

std::vector<Neighbour> NeighbourSearch::nearest(std::span<const float> query, int64_t count,
                                                int64_t except) const {
  std::vector<float> direction(query.begin(), query.end());
  const float scale = inverse_norm(query);
  for (float& x : direction) x *= scale;
  std::vector<Neighbour> all;
  all.reserve(vectors_.words());
  for (int64_t i = 0; i < vectors_.words(); ++i) {
    if (i == except) continue;
    const double cosine =
        dot(direction, vectors_.vector(i)) * static_cast<double>(inverse_norms_[i]);
    all.push_back({i, std::isfinite(cosine) ? std::clamp(cosine, -1.0, 1.0) : 0.0});
  }
  const auto kept = std::min<size_t>(all.size(), static_cast<size_t>(std::max<int64_t>(count, 0)));
  std::partial_sort(all.begin(), all.begin() + kept, all.end(), [](auto& a, auto& b) {
    return a.cosine != b.cosine ? a.cosine > b.cosine : a.word < b.word;
  });
  all.resize(kept);
  return all;
}

int64_t nearest_spelling(const WordVectors& vectors, std::string_view typed) {
  const std::u32string letters = code_points_of(typed);
  if (letters.size() > 64) return -1;
  size_t fewest = too_many_edits(letters.size());
  int64_t best = -1;
  for (int64_t i = 0; i < vectors.words() && fewest > 1; ++i) {
    if (vectors.word(i).size() > 4 * (letters.size() + fewest)) continue;
    const size_t n = edit_distance(letters, code_points_of(vectors.word(i)), fewest);
    if (n >= fewest) continue;
    fewest = n;
    best = i;
  }
  return best;
}

}  // namespace fovea
