#include "text/readability.h"

#include <fmt/format.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <string_view>
#include <unordered_set>

#include "base/ascii.h"
#include "base/sip_hash.h"
#include "base/utf8.h"
#include "text/language.h"
#include "text/tokenization.h"

namespace fovea {

const char* ReadingWarning::code() const {
  switch (kind) {
    case Kind::unknown_characters:
      return "unknown_characters";
    case Kind::unreadable:
      return "unreadable";
    case Kind::other_language:
      return "other_language";
    case Kind::not_copied:
      return "not_copied";
  }
  return "";
}

namespace {

constexpr size_t kMostListed = 20;

// Returns a list such as " a b c", with "…" if there are more than kMostListed units.
std::string listed(std::span<const std::string> units) {
  std::string list;
  for (const std::string& unit : units.first(std::min(units.size(), kMostListed)))
    list += " " + printable(unit, 40);
  return units.size() > kMostListed ? list + " …" : list;
}

// Whether a unit is visible on its own. Joiners and variation selectors only change other
// characters.
bool is_visible(std::string_view unit) {
  return !std::ranges::all_of(code_points(unit), [](char32_t c) {
    return u_hasBinaryProperty(static_cast<UChar32>(c), UCHAR_DEFAULT_IGNORABLE_CODE_POINT) != 0;
  });
}

// The script of a letter. Chinese and Japanese letters have the same result, USCRIPT_HAN.
// USCRIPT_COMMON for characters that are not letters.
UScriptCode script_of(char32_t c) {
  UErrorCode error = U_ZERO_ERROR;
  const UScriptCode script = uscript_getScript(static_cast<UChar32>(c), &error);
  if (U_FAILURE(error) || !u_isalpha(static_cast<UChar32>(c)) || script == USCRIPT_INHERITED)
    return USCRIPT_COMMON;
  const bool japanese =
      script == USCRIPT_HIRAGANA || script == USCRIPT_KATAKANA || script == USCRIPT_BOPOMOFO;
  return japanese ? USCRIPT_HAN : script;
}

// The letters of a sentence that are not in the script of most of its letters, such as those of a
// Greek name in an English sentence. A model may have pieces for them, but it rarely saw them.
std::vector<std::string> foreign_letters(std::string_view sentence) {
  std::map<UScriptCode, size_t> counts;
  for (const char32_t c : code_points(sentence))
    if (const UScriptCode script = script_of(c); script != USCRIPT_COMMON) ++counts[script];
  if (counts.size() < 2) return {};
  const UScriptCode most =
      std::ranges::max_element(counts, {}, [](const auto& entry) { return entry.second; })->first;
  std::vector<std::string> letters;
  for (const char32_t c : code_points(sentence))
    if (const UScriptCode script = script_of(c); script != USCRIPT_COMMON && script != most)
      append_utf8(letters.emplace_back(), c);
  return letters;
}

using UnitSet = std::unordered_set<std::string_view, TableHash>;

}  // namespace

std::string describe(const ReadingWarning& warning, const Vocabulary& vocabulary) {
  const VocabularyCoverage& coverage = warning.coverage;
  const int64_t unknown = coverage.unknown + coverage.spelt;
  return fmt::format("{} of {} {} {} unknown to this model:{}", unknown, coverage.units,
                     vocabulary.has_whole_words() ? "words" : "characters",
                     unknown == 1 ? "is" : "are", listed(coverage.examples));
}

std::string describe_lost(const ReadingWarning& warning, const Vocabulary& vocabulary) {
  const size_t count = warning.lost.size();
  return fmt::format("the translation lacks {} {}{} of the text:{}", count,
                     vocabulary.has_whole_words() ? "word" : "character", count == 1 ? "" : "s",
                     listed(warning.lost));
}

std::string describe_language(const DetectedLanguage& detected, const std::string& language) {
  return fmt::format("the text looks like {}, and the model reads {}",
                     language_name(detected.language), language_name(language));
}

std::vector<ReadingWarning> coverage_warnings(const Vocabulary& vocabulary,
                                              std::span<const std::string> sentences) {
  VocabularyCoverage all;
  for (const std::string& sentence : sentences) all.add(vocabulary.coverage(sentence));
  if (2 * (all.unknown + all.spelt) > all.units)
    return {{.kind = ReadingWarning::Kind::unreadable, .coverage = all}};
  if (all.unknown == 0) return {};
  all.spelt = 0;  // no warning about units that byte pieces can spell
  return {{.kind = ReadingWarning::Kind::unknown_characters, .coverage = all}};
}

std::vector<ReadingWarning> copy_warnings(const Vocabulary& vocabulary,
                                          std::span<const std::string> sentences,
                                          std::span<const std::string> translations) {
  VocabularyCoverage all;
  ReadingWarning warning{.kind = ReadingWarning::Kind::not_copied};
  std::unordered_set<std::string, TableHash> lost;
  for (size_t i = 0; i < sentences.size(); ++i) {
    const VocabularyCoverage coverage = vocabulary.coverage(sentences[i]);
    all.add(coverage);
    std::vector<std::string> units = coverage.missing;
    if (!vocabulary.has_whole_words())
      std::ranges::move(foreign_letters(nfc(sentences[i])), std::back_inserter(units));
    UnitSet seen;
    for (const std::string& unit : units)
      if (seen.insert(unit).second && is_visible(unit) &&
          translations[i].find(unit) == std::string::npos && lost.insert(unit).second)
        warning.lost.push_back(unit);
  }
  const bool unreadable = 2 * (all.unknown + all.spelt) > all.units;
  if (unreadable || warning.lost.empty()) return {};
  return {std::move(warning)};
}

namespace {

bool has_letter(std::string_view word) {
  return std::ranges::any_of(code_points(word),
                             [](char32_t c) { return u_isalpha(static_cast<UChar32>(c)); });
}

// The distinct words of a text, because a repeated word is no further evidence.
std::vector<std::string_view> distinct_words(std::string_view text) {
  UnitSet seen;
  std::vector<std::string_view> distinct;
  for (const std::string_view word : split_words(text))
    if (has_letter(word) && seen.insert(word).second) distinct.push_back(word);
  return distinct;
}

// The detected language of all words, or of all words except `skipped`.
DetectedLanguage language_of(std::span<const std::string_view> words, size_t skipped = SIZE_MAX) {
  std::string text;
  for (size_t i = 0; i < words.size(); ++i)
    if (i != skipped) text.append(words[i]).append(" ");
  return sure_language(detect_language(text));
}

bool is_capitalised(std::string_view word) {
  return u_isupper(static_cast<UChar32>(*code_points(word).begin()));
}

// Returns whether the language is no longer detected if one of the words, such as a foreign name,
// is removed. Always false for a single word and for more than kFew words.
bool depends_on_one_word(std::span<const std::string_view> words, const std::string& language) {
  constexpr size_t kFew = 8;
  if (words.size() < 2 || words.size() > kFew) return false;
  for (size_t i = 0; i < words.size(); ++i)
    if (!same_language(language_of(words, i).language, language)) return true;
  return false;
}

// Returns whether the language is no longer detected if all capitalised words, which include names,
// are removed. Always false if all words are capitalised.
bool depends_on_capitalised(std::span<const std::string_view> words, const std::string& language) {
  std::vector<std::string_view> others;
  std::ranges::remove_copy_if(words, std::back_inserter(others), is_capitalised);
  return !others.empty() && !same_language(language_of(others).language, language);
}

}  // namespace

DetectedLanguage language_despite_names(std::string_view text) {
  const std::vector<std::string_view> words = distinct_words(text);
  const DetectedLanguage found = language_of(words);
  const bool names =
      depends_on_one_word(words, found.language) || depends_on_capitalised(words, found.language);
  return names ? sure_language({}) : found;
}

std::vector<ReadingWarning> language_warnings(std::string_view text, const std::string& language) {
  const std::vector<std::string> known = detected_languages();
  if (std::ranges::find(known, language) == known.end()) return {};
  const DetectedLanguage found = language_despite_names(text);
  if (found.confidence < kCertain || same_language(found.language, language)) return {};
  return {{.kind = ReadingWarning::Kind::other_language, .detected = found}};
}

}  // namespace fovea
