#include "decode/attention_alignment.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <iterator>

#include "base/check.h"
#include "decode/framed_attention.h"
#include "text/batch.h"

namespace fovea {
namespace {

constexpr std::string_view kCross = "cross";
constexpr const char* kNoAttention =
    "the model has no attention from target to source, so it cannot align words; choose a model "
    "with attention";

bool is_chosen(const AttentionMap& map, const AttentionChoice& choice) {
  return map.kind == kCross && (choice.layer < 0 || map.layer == choice.layer) &&
         (choice.head < 0 || map.head == choice.head);
}

struct Extent {
  int64_t layers = 0, heads = 0;
};

Extent extent_of(std::span<const AttentionMap> maps) {
  Extent extent;
  for (const AttentionMap& map : maps) {
    if (map.kind != kCross) continue;
    extent.layers = std::max(extent.layers, map.layer + 1);
    extent.heads = std::max(extent.heads, map.head + 1);
  }
  check(extent.layers > 0, ExitCode::usage, kNoAttention);
  return extent;
}

// Replaces row i by row i + 1. So each target word gets the attention of the step that reads it
// instead of the step that writes it. No step reads </s>, so the last row does not change.
void shift_rows(SoftAlignment& pieces) {
  std::copy(pieces.weights.begin() + std::min(pieces.cols, std::ssize(pieces.weights)),
            pieces.weights.end(), pieces.weights.begin());
}

}  // namespace

SoftAlignment mean_attention(std::span<const AttentionMap> maps, std::string_view kind) {
  SoftAlignment mean;
  int64_t count = 0;
  for (const AttentionMap& map : maps) {
    if (map.kind != kind) continue;
    if (count++ == 0) mean = {map.rows, map.cols, std::vector<float>(map.weights.size(), 0.0f)};
    for (size_t i = 0; i < map.weights.size(); ++i) mean.weights[i] += map.weights[i];
  }
  check(count > 0, ExitCode::usage, kNoAttention);
  for (float& w : mean.weights) w /= static_cast<float>(count);
  return mean;
}

std::string AttentionChoice::name() const {
  const std::string layers = layer < 0 ? "mean of layers" : fmt::format("layer {}", layer);
  const std::string heads = head < 0 ? "mean of heads" : fmt::format("head {}", head);
  return layers + ", " + heads + (step == AlignmentStep::reads ? ", next step" : "");
}

SoftAlignment chosen_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice) {
  std::vector<AttentionMap> chosen;
  std::copy_if(maps.begin(), maps.end(), std::back_inserter(chosen),
               [&](const AttentionMap& map) { return is_chosen(map, choice); });
  if (chosen.empty()) {
    const auto [layers, heads] = extent_of(maps);
    fail(ExitCode::usage, choice.name(), ": the model has layers 0 to ", layers - 1,
         " and heads 0 to ", heads - 1, " of attention to the source");
  }
  SoftAlignment mean = mean_attention(chosen, kCross);
  if (choice.step == AlignmentStep::reads) shift_rows(mean);
  return mean;
}

std::vector<AttentionChoice> attention_choices(std::span<const AttentionMap> maps) {
  const auto [layers, heads] = extent_of(maps);
  std::vector<AttentionChoice> choices;
  for (const AlignmentStep step : {AlignmentStep::writes, AlignmentStep::reads}) {
    choices.push_back({-1, -1, step});
    if (layers * heads == 1) continue;
    for (int64_t layer = 0; layer < layers; ++layer)
      for (int64_t head = heads > 1 ? -1 : 0; head < heads; ++head)
        choices.push_back({layer, head, step});
  }
  return choices;
}

SoftAlignment by_word(const SoftAlignment& pieces, std::span<const int> target_words,
                      std::span<const int> source_words) {
  assert(std::ssize(target_words) == pieces.rows && std::ssize(source_words) == pieces.cols);
  const int64_t rows = target_words.empty() ? 0 : target_words.back() + 1;
  const int64_t cols = source_words.empty() ? 0 : source_words.back() + 1;
  SoftAlignment words{rows, cols, std::vector<float>(static_cast<size_t>(rows * cols), 0.0f)};
  std::vector<int> size(static_cast<size_t>(rows), 0);  // number of pieces of each target word
  for (int64_t i = 0; i < pieces.rows; ++i) {
    ++size[target_words[i]];
    for (int64_t j = 0; j < pieces.cols; ++j)
      words.weights[target_words[i] * cols + source_words[j]] += pieces.at(i, j);
  }
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < cols; ++j)
      words.weights[i * cols + j] /= static_cast<float>(std::max(1, size[i]));
  return words;
}

void WordPieces::shorten(int64_t pieces) {
  if (std::ssize(ids) <= pieces) return;
  const int last = count();
  ids.resize(static_cast<size_t>(pieces));
  words.resize(static_cast<size_t>(pieces));
  words.push_back(last);
}

WordPieces cut_words(const Vocabulary& vocabulary, std::string_view line) {
  return {vocabulary.encode(line), vocabulary.words_in(line)};
}

void attend_pairs(const Model& model, std::span<const PairPieces> pairs, int64_t batch_tokens,
                  const UseMaps& use) {
  std::vector<size_t> readable;  // indices of the pairs without an empty side
  std::vector<int64_t> lengths;
  for (size_t i = 0; i < pairs.size(); ++i) {
    const auto& [source, target] = pairs[i];
    if (source.ids.empty() || target.ids.empty()) continue;
    readable.push_back(i);
    lengths.push_back(std::max(std::ssize(source.ids), std::ssize(target.ids)));
  }
  for (const auto& members : batches_by_length(lengths, {.tokens = batch_tokens})) {
    std::vector<TextPair> batch;
    for (const int64_t m : members)
      batch.push_back({pairs[readable[m]].source.ids, pairs[readable[m]].target.ids});
    const auto maps = attention_of(model, batch);
    for (size_t i = 0; i < members.size(); ++i) use(readable[members[i]], maps[i]);
  }
}

SoftAlignment word_attention(std::span<const AttentionMap> maps, const AttentionChoice& choice,
                             const PairPieces& pair) {
  return by_word(chosen_attention(maps, choice), pair.target.words, pair.source.words);
}

Links hard_alignment(const SoftAlignment& words) {
  Links links;
  for (int64_t i = 0; i + 1 < words.rows; ++i) {
    int64_t best = 0;
    for (int64_t j = 1; j + 1 < words.cols; ++j)
      if (words.at(i, j) > words.at(i, best)) best = j;
    if (best + 1 < words.cols && words.at(i, best) > 0)
      links.emplace_back(static_cast<int>(best), static_cast<int>(i));
  }
  return links;
}

std::vector<int> nearest_targets(const SoftAlignment& words) {
  std::vector<int> nearest;
  for (int64_t j = 0; j + 1 < words.cols; ++j) {
    int64_t best = -1;
    for (int64_t i = 0; i + 1 < words.rows; ++i)
      if (words.at(i, j) > (best < 0 ? 0 : words.at(best, j))) best = i;
    nearest.push_back(static_cast<int>(best));
  }
  return nearest;
}

Links links_above(const SoftAlignment& words, float threshold) {
  Links links;
  for (int64_t i = 0; i + 1 < words.rows; ++i)
    for (int64_t j = 0; j + 1 < words.cols; ++j)
      if (words.at(i, j) > threshold) links.emplace_back(static_cast<int>(j), static_cast<int>(i));
  return links;
}

std::string pharaoh(const Links& links) {
  std::string text;
  for (const auto& [source, target] : links)
    text += fmt::format("{}{}-{}", text.empty() ? "" : " ", source, target);
  return text;
}

}  // namespace fovea
