#include "decode/alignment.h"

#include <fmt/format.h>

#include <cassert>

namespace fovea {

SoftAlignment as_alignment(const AttentionMap& map) { return {map.rows, map.cols, map.weights}; }

SoftAlignment mean_attention(std::span<const AttentionMap> maps, std::string_view kind) {
  SoftAlignment mean;
  int64_t count = 0;
  for (const AttentionMap& map : maps) {
    if (map.kind != kind) continue;
    if (count++ == 0) mean = {map.rows, map.cols, std::vector<float>(map.weights.size(), 0.0f)};
    for (size_t i = 0; i < map.weights.size(); ++i) mean.weights[i] += map.weights[i];
  }
  assert(count > 0);
  for (float& w : mean.weights) w /= static_cast<float>(count);
  return mean;
}

SoftAlignment by_word(const SoftAlignment& pieces, std::span<const int> target_words,
                      std::span<const int> source_words) {
  assert(std::ssize(target_words) == pieces.rows && std::ssize(source_words) == pieces.cols);
  const int64_t rows = target_words.empty() ? 0 : target_words.back() + 1;
  const int64_t cols = source_words.empty() ? 0 : source_words.back() + 1;
  SoftAlignment words{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols), 0.0f)};
  std::vector<int> size(static_cast<size_t>(rows), 0);
  for (int64_t i = 0; i < pieces.rows; ++i) {
    ++size[target_words[i]];
    for (int64_t j = 0; j < pieces.cols; ++j)
      words.weights[target_words[i] * cols + source_words[j]] += pieces.at(i, j);
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j) words.weights[i * cols + j] /= static_cast<float>(size[i]);
  return words;
}

Links hard_alignment(const SoftAlignment& words) {
  Links links;
  if (words.cols < 2) return links;
  for (int64_t i = 0; i + 1 < words.rows; ++i) {
    int64_t best = 0;
    for (int64_t j = 1; j + 1 < words.cols; ++j)
      if (words.at(i, j) > words.at(i, best)) best = j;
    links.emplace_back(static_cast<int>(best), static_cast<int>(i));
  }
  return links;
}

std::string pharaoh(const Links& links) {
  std::string text;
  for (const auto& [source, target] : links)
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
  return text;
}

}  // namespace fovea
