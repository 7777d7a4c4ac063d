#include "text/readability.h"

#include <fmt/format.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <unordered_set>

#include "base/utf8.h"
#include "text/language.h"
#include "text/pieces.h"

namespace fovea {

const char* ReadingWarning::code() const {
  switch (kind) {
    case Kind::unknown_characters:
      return "unknown_characters";
    case Kind::unreadable:
      return "unreadable";
    case Kind::other_language:
      return "other_language";
  }
  return "";
}

std::string describe(const ReadingWarning& warning, const Vocabulary& vocabulary) {
  const Coverage& coverage = warning.coverage;
  std::string examples;
  for (const std::string& example : coverage.examples) examples += " " + printable(example, 40);
  const int64_t unknown = coverage.unknown + coverage.spelt;
  return fmt::format("{} of {} {} {} unknown to this model:{}", unknown, coverage.units,
                     vocabulary.has_whole_words() ? "words" : "characters",
                     unknown == 1 ? "is" : "are", examples);
}

std::string describe_language(const Detected& detected, const std::string& language) {
  return fmt::format("the text looks like {}, and the model reads {}",
                     language_name(detected.language), language_name(language));
}

std::vector<ReadingWarning> coverage_warnings(const Vocabulary& vocabulary,
                                              std::span<const std::string> sentences) {
  Coverage all;
  for (const std::string& sentence : sentences) all.add(vocabulary.coverage(sentence));
  if (2 * (all.unknown + all.spelt) > all.units)
    return {{.kind = ReadingWarning::Kind::unreadable, .coverage = all}};
  if (all.unknown == 0) return {};
  all.spelt = 0;  // a model reads some characters byte by byte
  return {{.kind = ReadingWarning::Kind::unknown_characters, .coverage = all}};
}

namespace {

bool has_letter(std::string_view word) {
  return std::ranges::any_of(code_points(word),
                             [](char32_t c) { return u_isalpha(static_cast<UChar32>(c)); });
}

// The words of a text without repetitions: "A dog." a thousand times is no more evidence than once.
std::vector<std::string_view> distinct_words(std::string_view text) {
  std::unordered_set<std::string_view> seen;
  std::vector<std::string_view> distinct;
  for (const std::string_view word : split_words(text))
    if (has_letter(word) && seen.insert(word).second) distinct.push_back(word);
  return distinct;
}

// The detected language of all words, or of all but one.
Detected language_of(std::span<const std::string_view> words, size_t left_out = SIZE_MAX) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    if (i != left_out) text.append(words[i]).append(" ");
  return sure_language(detect_language(text));
}

bool is_capitalised(std::string_view word) {
  return u_isupper(static_cast<UChar32>(*code_points(word).begin()));
}

// Is one word, such as a foreign name, all the evidence for the language? Always false for one
// word alone and for more than a few.
bool rests_on_one_word(std::span<const std::string_view> words, const std::string& language) {
  constexpr size_t kFew = 8;
  if (words.size() < 2 || words.size() > kFew) return false;
  for (size_t i = 0; i < words.size(); ++i)
    if (!same_language(language_of(words, i).language, language)) return true;
  return false;
}

// The same for capitalised words, of which names are some: false if there are no others.
bool rests_on_capitalised(std::span<const std::string_view> words, const std::string& language) {
  std::vector<std::string_view> others;
  std::ranges::remove_copy_if(words, std::back_inserter(others), is_capitalised);
  return !others.empty() && !same_language(language_of(others).language, language);
}

}  // namespace

Detected language_despite_names(std::string_view text) {
  const std::vector<std::string_view> words = distinct_words(text);
  const Detected found = language_of(words);
  const bool names =
      rests_on_one_word(words, found.language) || rests_on_capitalised(words, found.language);
  return names ? sure_language({}) : found;
}

std::vector<ReadingWarning> language_warnings(std::string_view text, const std::string& language) {
  const std::vector<std::string> known = detected_languages();
  if (std::ranges::find(known, language) == known.end()) return {};
  const Detected found = language_despite_names(text);
  if (found.confidence < kCertain || same_language(found.language, language)) return {};
  return {{.kind = ReadingWarning::Kind::other_language, .detected = found}};
}

}  // namespace fovea
