#include "text/sentence_gap.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// Note [Sentence gaps]
// The text between two sentences stays between their translations. Blanks are an exception if only
// one of the two languages separates sentences by blanks.
// - From Chinese or Japanese to other languages: sentences that touch get a blank, and an
//   ideographic space becomes a blank.
// - From other languages to Chinese or Japanese: blanks are dropped. But blanks stay between two
//   translations that both are in another script, such as two copied names.
// In the source, the script of the characters on both sides of the gap decides which rule applies.
// In the translation, the target language decides, or the script if the language is unknown. Thai,
// Lao, Khmer or Myanmar text that was cut without a blank is treated as Chinese. Line ends, tabs
// and signs always stay. All callers join sentences by this rule: the command line, the service,
// its streams and markup.

constexpr char32_t kIdeographicSpace = 0x3000;

bool only_blanks(std::string_view text) {
  return std::ranges::all_of(code_points(text),
                             [](char32_t c) { return c == ' ' || c == kIdeographicSpace; });
}

// Whether a character is ASCII, or a letter or digit of a script that separates sentences by
// blanks.
bool is_spaced(char32_t c) {
  return c < 0x80 || (u_isalnum(static_cast<UChar32>(c)) && !is_east_asian(c));
}

// Returns whether the scripts on both sides of a gap are written without a blank in this gap.
bool touches(std::string_view before, std::string_view after, bool no_text_between) {
  const char32_t left = last_code_point(before), right = first_code_point(after);
  if (no_text_between) return is_unspaced_or_wide(left) || is_unspaced_or_wide(right);
  return is_east_asian(left) || is_east_asian(right);
}

bool touches_in_source(const SentenceGap& gap) {
  return touches(gap.source_before, gap.source_after, gap.text.empty());
}

bool touches_in_target(const SentenceGap& gap, std::string_view language) {
  const bool translated = !gap.before.empty() && !gap.after.empty();
  if (language.empty())
    return translated ? touches(gap.before, gap.after, gap.text.empty()) : touches_in_source(gap);
  if (!joins_sentences(language)) return false;
  return !translated || !is_spaced(last_code_point(gap.before)) ||
         !is_spaced(first_code_point(gap.after));
}

}  // namespace

bool joins_sentences(std::string_view language) {
  const std::string_view primary = language.substr(0, language.find_first_of("-_"));
  for (const char* known : {"zh", "ja", "yue", "wuu", "lzh", "cmn", "zt", "zho", "jpn"})
    if (primary == known) return true;
  return false;
}

std::string translated_gap(const SentenceGap& gap, std::string_view target_language) {
  const bool source = touches_in_source(gap), target = touches_in_target(gap, target_language);
  if (source == target || !only_blanks(gap.text)) return std::string(gap.text);
  if (target) return "";
  if (gap.text.empty()) return " ";
  std::string blanks;
  for (const char32_t c : code_points(gap.text))
    append_utf8(blanks, c == kIdeographicSpace ? U' ' : c);
  return blanks;
}

}  // namespace fovea
