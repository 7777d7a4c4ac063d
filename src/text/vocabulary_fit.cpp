#include "text/vocabulary_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/log.h"

namespace fovea {
namespace {

double ratio(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

void VocabularyFit::add(const Vocabulary& vocabulary, std::string_view line) {
  const std::vector<int32_t> ids = vocabulary.encode(line);
  const std::vector<int> word = vocabulary.words_of(ids);
  ++lines;
  pieces += std::ssize(ids);
  for (size_t i = 0, end = 0; i < ids.size(); i = end) {
    while (end < ids.size() && word[end] == word[i]) ++end;
    const auto bad = std::count(ids.begin() + i, ids.begin() + end, kUnk);
    unknown += bad;
    whole_words += bad == 0;
    ++words;
  }
}

std::string VocabularyFit::summary() const {
  return fmt::format(
      "{} lines: {:.2f} pieces per line, {:.3f} % unknown pieces, {:.2f} % of words covered",
      with_commas(lines), ratio(pieces, lines), 100 * ratio(unknown, pieces),
      100 * ratio(whole_words, words));
}

}  // namespace fovea
