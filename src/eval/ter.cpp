#include "eval/ter.h"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "eval/tercom.h"

namespace fovea {
namespace {

// Returns 100 · edits / reference length. If the reference has no words, returns 100 or, without
// edits, 0.
template <class Real>
double rate(std::span<const Real> sums) {
  Real edits = sums[0], length = sums[1];
  if (length > 0) return 100.0 * static_cast<double>(edits / length);
  return edits > 0 ? 100.0 : 0.0;
}

}  // namespace

Signature Ter::settings() const {
  auto yes = [](bool on) { return std::string(on ? "yes" : "no"); };
  return {{"case", options_.case_sensitive ? "mixed" : "lc"},
          {"tok", "tercom"},
          {"norm", yes(options_.normalized)},
          {"punct", yes(!options_.no_punct)},
          {"asian", yes(options_.asian_support)}};
}

SegmentStatistics Ter::statistics(const Lines& hypotheses,
                                  std::span<const Lines> references) const {
  SegmentStatistics result{2, {}};
  result.values.reserve(2 * hypotheses.size());
  std::unordered_map<Characters, uint32_t> numbers;
  auto tokenized = [&](const Characters& line) {
    Characters text = tokenize_for_ter(options_, without_trailing_blanks(line)), result;
    for (std::u32string_view word : words_of(text)) (result += word) += U' ';
    return result;
  };
  auto numbered = [&](const Characters& text) {
    std::vector<uint32_t> result;
    for (std::u32string_view word : words_of(text))
      result.push_back(numbers.try_emplace(Characters(word), static_cast<uint32_t>(numbers.size()))
                           .first->second);
    return result;
  };
  for (size_t s = 0; s < hypotheses.size(); ++s) {
    int edits = std::numeric_limits<int>::max();
    size_t length = 0;
    std::vector<uint32_t> hypothesis = numbered(tokenized(characters_of(hypotheses[s])));
    for (const Lines& lines : references) {
      // sacreBLEU tokenizes references twice, so this code does the same to get the same scores.
      // With `normalized` it matters: in "it's<tab>", 's is split off only in the second pass, when
      // a blank follows.
      std::vector<uint32_t> reference = numbered(tokenized(tokenized(characters_of(lines[s]))));
      edits = std::min(edits, count_edits(hypothesis, reference));
      length += reference.size();
    }
    result.values.push_back(edits);
    result.values.push_back(static_cast<double>(length) / static_cast<double>(references.size()));
  }
  return result;
}

double Ter::score(std::span<const double> sums) const { return rate(sums); }
double Ter::score(std::span<const float> sums) const { return rate(sums); }

double ter(const Lines& hypotheses, const Lines& references, const TercomOptions& options) {
  return corpus_score(Ter(options), hypotheses, {&references, 1});
}

}  // namespace fovea
