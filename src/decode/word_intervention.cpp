#include "decode/word_intervention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/check.h"
#include "text/corpus.h"

namespace fovea {
namespace {

constexpr double kSumSlack = 1e-3;  // maximum distance of the sum of the weights from 1

void check_word(const char* name, int64_t word, int64_t words) {
  check(word >= 0 && word < words, ExitCode::usage, name, ": there is no word ", word,
        "; the sentence has words 0 to ", words - 1, ", of which the last is </s>");
}

void check_head(const char* name, const HeadName& head, const ModelConfig& config) {
  const HeadCount count = heads_of(config, head.kind);
  check(count.layers > 0, ExitCode::usage, name, ": this model has no attention of kind '",
        head.kind, "'; kinds are encoder, decoder and cross");
  check(head.layer >= 0 && head.layer < count.layers, ExitCode::usage, name, ": there is no layer ",
        head.layer, "; ", head.kind, " attention has layers 0 to ", count.layers - 1);
  check(head.head >= 0 && head.head < count.heads, ExitCode::usage, name, ": there is no head ",
        head.head, "; ", head.kind, " attention has heads 0 to ", count.heads - 1);
}

}  // namespace

void WordWhatIf::check(const ModelConfig& config, int64_t words, const Names& names) const {
  using fovea::check;
  for (const int64_t word : masked) check_word(names.masked, word, words);
  check(std::set(masked.begin(), masked.end()).size() < static_cast<size_t>(words), ExitCode::usage,
        names.masked, ": all ", words, " words are masked; leave at least one unmasked");
  check(masked.empty() || heads_of(config, "cross").layers > 0, ExitCode::usage, names.masked,
        ": this model has no cross attention, so words cannot be masked");
  for (const HeadName& head : silent) check_head(names.silent, head, config);
  for (const Row& row : forced) check_row(row, config, words, names.forced);
}

void WordWhatIf::check_row(const Row& row, const ModelConfig& config, int64_t words,
                           const char* name) const {
  using fovea::check;
  const int64_t layer = std::max<int64_t>(row.layer, 0), head = std::max<int64_t>(row.head, 0);
  check_head(name, {"cross", layer, head}, config);
  check(row.step >= 0 && row.step < config.max_length, ExitCode::usage, name, ": there is no step ",
        row.step, "; steps are 0 to ", config.max_length - 1);
  if (row.weights.empty()) {
    check_word(name, row.word, words);
  } else {
    check(std::ssize(row.weights) == words, ExitCode::usage, name, ": ", row.weights.size(),
          " weights, expected one for each of the ", words, " words, including </s>");
    const bool signs = std::ranges::all_of(row.weights, [](double w) { return w >= 0 && w <= 1; });
    const double sum = std::accumulate(row.weights.begin(), row.weights.end(), 0.0);
    check(signs && std::abs(sum - 1) <= kSumSlack, ExitCode::usage, name,
          ": weights must be from 0 to 1 and sum to 1; these sum to ", sum);
  }
  for (const int64_t word : masked)
    check(row.weights.empty() ? word != row.word : row.weights[word] == 0, ExitCode::usage, name,
          ": step ", row.step, " has weight on word ", word,
          ", which is masked; remove one of them");
}

WhatIf WordWhatIf::in_pieces(std::span<const int> words_of) const {
  WhatIf result;
  for (size_t piece = 0; piece < words_of.size(); ++piece)
    if (std::ranges::find(masked, words_of[piece]) != masked.end())
      result.masked.push_back(static_cast<int32_t>(piece));
  result.silent = silent;
  for (const Row& row : forced) {
    WhatIf::Row pieces{row.step, row.layer, row.head, {}};
    double sum = 0;
    for (const int word : words_of) {
      const auto shared = static_cast<double>(std::ranges::count(words_of, word));
      const double weight = row.weights.empty() ? (word == row.word ? 1 : 0) : row.weights[word];
      pieces.weights.push_back(weight / shared);
      sum += pieces.weights.back();
    }
    for (double& weight : pieces.weights) weight /= sum;
    result.forced.push_back(std::move(pieces));
  }
  return result;
}

std::vector<int32_t> ids_read(const Vocabulary& source, const Model& model,
                              const std::string& line) {
  std::vector<int32_t> ids = source.encode(clean_line(line).text);
  const int64_t longest = model.max_length() - model.frame().source_pieces();
  if (std::ssize(ids) > longest) ids.resize(static_cast<size_t>(longest));
  ids.push_back(kEos);
  return ids;
}

}  // namespace fovea
