#include "explain/intervention_words.h"

#include <charconv>
#include <optional>

#include "base/check.h"
#include "explain/word_explanation.h"

namespace fovea {
namespace {

constexpr WordWhatIf::Names kNames{"`mask`", "`mask_head`", "`force`"};

std::optional<int64_t> number_of(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses KIND.LAYER.HEAD, such as "cross.0.2".
HeadName parse_head(const std::string& text) {
  const size_t last = text.rfind('.'), first = text.rfind('.', last - 1);
  if (last != std::string::npos && first != std::string::npos && first < last) {
    const auto layer = number_of(std::string_view(text).substr(first + 1, last - first - 1));
    const auto head = number_of(std::string_view(text).substr(last + 1));
    if (layer && head) return {text.substr(0, first), *layer, *head};
  }
  fail(ExitCode::usage, "`mask_head` ", text,
       ": expected KIND.LAYER.HEAD, both numbers from 0, for example cross.0.2");
}

int64_t word_of(const ModelBundle& bundle, const std::vector<int32_t>& ids, const char* option,
                const std::string& word) {
  const FoundWord found = find_word(bundle.source, ids, word);
  check(found.piece.has_value(), ExitCode::usage, option, " ", word,
        ": the sentence has no such word", found.note(word),
        "; give one of its words, the number of a word (from 1), or an occurrence such as dog#2");
  return bundle.source.words_of(ids)[*found.piece];
}

}  // namespace

WordWhatIf InterventionWords::read(const ModelBundle& bundle, const std::string& text) const {
  WordWhatIf interventions;
  if (!given()) return interventions;
  const std::vector<int32_t> ids = ids_read(bundle.source, *bundle.model, text);
  for (const std::string& word : mask)
    interventions.masked.push_back(word_of(bundle, ids, kNames.masked, word));
  for (const std::string& head : mask_head) interventions.silent.push_back(parse_head(head));
  for (const std::string& row : force) {
    const size_t equals = row.find('=');
    const auto step = number_of(std::string_view(row).substr(0, equals));
    check(equals != std::string::npos && step, ExitCode::usage, "`force` ", row,
          ": expected STEP=WORD, for example 2=dog");
    interventions.forced.push_back(
        {.step = *step, .word = word_of(bundle, ids, kNames.forced, row.substr(equals + 1))});
  }
  interventions.check(bundle.config, bundle.source.words_of(ids).back() + 1, kNames);
  return interventions;
}

}  // namespace fovea
