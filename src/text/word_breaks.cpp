#include "text/word_breaks.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/uscript.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <memory>

#include "base/ascii.h"
#include "base/icu_breaks.h"
#include "base/utf8.h"
#include "text/tokenization.h"

namespace fovea {
namespace {

// Note [Segmented text]
// Corpora of unspaced scripts are often already segmented: blanks separate words. The words of such
// text are not split further, so that existing alignments of these words stay valid. A run is a
// sequence of unspaced letters between two blanks. A text counts as segmented if its runs have at
// most four letters on average (eight in Thai, Lao, Khmer and Myanmar). Blanks next to other
// letters do not count: many authors write blanks around Latin words in Chinese text.
constexpr int64_t kSegmentLetters = 4, kSegmentLettersOfAlphabets = 8;

constexpr char32_t kFirstUnspaced = 0x0E00;  // Thai

bool has_script(char32_t c, UScriptCode script) {
  return uscript_hasScript(static_cast<UChar32>(c), script);
}

bool is_han_or_kana(char32_t c) {
  return has_script(c, USCRIPT_HAN) || has_script(c, USCRIPT_HIRAGANA) ||
         has_script(c, USCRIPT_KATAKANA);
}

// Returns whether a character is a letter, mark or digit that may belong to an unspaced script.
bool is_letter(char32_t c) {
  constexpr uint32_t kLetters = U_GC_L_MASK | U_GC_M_MASK | U_GC_N_MASK;
  return c >= kFirstUnspaced && (U_GET_GC_MASK(static_cast<UChar32>(c)) & kLetters);
}

bool is_mark(char32_t c) { return U_GET_GC_MASK(static_cast<UChar32>(c)) & U_GC_M_MASK; }

bool is_segmented(std::string_view text) {
  int64_t letters = 0, gaps = 0, limit = kSegmentLettersOfAlphabets;
  bool unspaced = false,
       blank = false;  // is the last non-blank character unspaced; does a blank follow it
  for (const char32_t c : code_points(text)) {
    if (is_ascii_blank(c)) {
      blank = true;
      continue;
    }
    const bool now = is_unspaced(c);
    if (now && unspaced && blank) ++gaps;
    if (now && !is_mark(c)) ++letters;
    if (now && is_han_or_kana(c)) limit = kSegmentLetters;
    unspaced = now;
    blank = false;
  }
  return gaps > 0 && letters <= limit * (gaps + 1);
}

// Whether a text has an unspaced letter. Fast for text of other scripts, which is the common case.
bool has_unspaced(std::string_view text) {
  constexpr unsigned char kLead = 0xE0;  // lead byte of U+0800 and above in UTF-8
  if (std::ranges::none_of(text, [](char c) { return static_cast<unsigned char>(c) >= kLead; }))
    return false;
  return std::ranges::any_of(code_points(text), is_unspaced);
}

}  // namespace

bool is_unspaced(char32_t c) {
  if (!is_letter(c)) return false;
  return is_han_or_kana(c) || has_script(c, USCRIPT_THAI) || has_script(c, USCRIPT_LAO) ||
         has_script(c, USCRIPT_KHMER) || has_script(c, USCRIPT_MYANMAR);
}

bool is_wide_punctuation(char32_t c) {
  const auto width = u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_EAST_ASIAN_WIDTH);
  return u_ispunct(static_cast<UChar32>(c)) && (width == U_EA_WIDE || width == U_EA_FULLWIDTH);
}

bool is_unspaced_or_wide(char32_t c) { return is_unspaced(c) || is_wide_punctuation(c); }

bool is_east_asian(char32_t c) {
  return (is_letter(c) && is_han_or_kana(c)) || is_wide_punctuation(c);
}

char32_t first_code_point(std::string_view text) {
  return text.empty() ? 0 : decode_utf8(text, 0).value;
}

char32_t last_code_point(std::string_view text) {
  if (text.empty()) return 0;
  const std::string_view tail = text.substr(text.size() - std::min<size_t>(text.size(), 4));
  auto at = static_cast<int32_t>(tail.size());
  UChar32 c;
  U8_PREV(tail.data(), 0, at, c);
  return c < 0 ? kReplacement : static_cast<char32_t>(c);
}

std::vector<size_t> word_breaks(std::string_view text) {
  if (!has_unspaced(text) || is_segmented(text)) return {};
  thread_local const auto rules = icu_rules(icu::BreakIterator::createWordInstance);
  std::vector<size_t> breaks = icu_breaks(rules.get(), text);
  std::erase_if(breaks, [&](size_t at) {
    if (at == text.size()) return true;
    const char32_t before = last_code_point(text.substr(0, at));
    const char32_t after = first_code_point(text.substr(at));
    // Spaces that are not ASCII (U+3000) stay at the end of the word before them.
    const bool blank = is_ascii_blank(before) || u_isUWhiteSpace(static_cast<UChar32>(after));
    return blank || !(is_unspaced_or_wide(before) || is_unspaced_or_wide(after));
  });
  return breaks;
}

std::vector<std::string_view> text_words(std::string_view text) {
  return text_words(text, word_breaks(text));
}

std::vector<std::string_view> text_words(std::string_view text, std::span<const size_t> breaks) {
  std::vector<std::string_view> words;
  auto next = breaks.begin();
  for (const std::string_view word : split_words(text)) {
    const auto begin = static_cast<size_t>(word.data() - text.data());
    const size_t end = begin + word.size();
    size_t at = begin;
    for (; next != breaks.end() && *next < end; ++next) {
      words.push_back(text.substr(at, *next - at));
      at = *next;
    }
    words.push_back(text.substr(at, end - at));
  }
  return words;
}

}  // namespace fovea
