#include "eval/metric_tokenizers.h"

#include <unicode/uchar.h>
#include <unicode/uscript.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <utility>

#include "base/check.h"
#include "base/utf8.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

struct Range {
  char32_t first, last;
};

template <size_t N>
bool in(const std::array<Range, N>& ranges, char32_t c) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [c](Range r) { return r.first <= c && c <= r.last; });
}

bool is_digit(char32_t c) { return c >= '0' && c <= '9'; }
bool is_not_digit(char32_t c) { return !is_digit(c); }
bool is_point_or_comma(char32_t c) { return c == '.' || c == ','; }
bool is_hyphen(char32_t c) { return c == '-'; }

// Whether c is a blank or ASCII punctuation other than ' , - and .
bool is_western_mark(char32_t c) {
  static constexpr std::array<Range, 6> kMarks{
      {{0x20, 0x26}, {0x28, 0x2b}, {0x2f, 0x2f}, {0x3a, 0x40}, {0x5b, 0x60}, {0x7b, 0x7e}}};
  return c < 0x80 && in(kMarks, c);
}

uint32_t category(char32_t c) { return U_MASK(u_charType(static_cast<UChar32>(c))); }
bool is_punctuation(char32_t c) { return (category(c) & U_GC_P_MASK) != 0; }
bool is_symbol(char32_t c) { return (category(c) & U_GC_S_MASK) != 0; }
bool is_not_number(char32_t c) { return (category(c) & U_GC_N_MASK) == 0; }

// Whether sacreBLEU's tokenizer "zh" separates c. sacreBLEU's table is meant to contain the
// ideographs from U+20000 and from U+2F800. But because of the notation in its source code, it
// contains U+2001..U+2A6D: curly quotes, dashes and arrows count as Chinese. Published scores
// depend on this, so this function does the same.
bool is_chinese(char32_t c) {
  static constexpr std::array<Range, 17> kRanges{{{0x2001, 0x2a6d},
                                                  {0x2e80, 0x2eff},
                                                  {0x2f00, 0x2fdf},
                                                  {0x2ff0, 0x2fff},
                                                  {0x3000, 0x303f},
                                                  {0x3100, 0x312f},
                                                  {0x31a0, 0x31bf},
                                                  {0x31c0, 0x31ef},
                                                  {0x3200, 0x33ff},
                                                  {0x3400, 0x4db5},
                                                  {0x4e00, 0x9fbb},
                                                  {0xf900, 0xfa2d},
                                                  {0xfa30, 0xfa6a},
                                                  {0xfa70, 0xfad9},
                                                  {0xfe10, 0xfe1f},
                                                  {0xfe30, 0xfe4f},
                                                  {0xff00, 0xffef}}};
  return c >= 0x2001 && in(kRanges, c);
}

bool is_asian_mark(char32_t c) {
  static constexpr std::array<Range, 9> kMarks{{{0x3001, 0x3002},
                                                {0x3008, 0x3011},
                                                {0x3014, 0x301f},
                                                {0x30fb, 0x30fb},
                                                {0xff01, 0xff02},
                                                {0xff08, 0xff09},
                                                {0xff0c, 0xff0c},
                                                {0xff0e, 0xff0e},
                                                {0xff61, 0xff65}}};
  return in(kMarks, c) || c == 0xff1a || c == 0xff1b || c == 0xff1f;
}

bool is_asian_word(char32_t c) {
  static constexpr std::array<Range, 6> kRanges{{{0x2e80, 0x2eff},
                                                 {0x31c0, 0x31ef},
                                                 {0x3200, 0x4dbf},
                                                 {0x4e00, 0x9fff},
                                                 {0xf900, 0xfaff},
                                                 {0xfe30, 0xfe4f}}};
  return in(kRanges, c) || is_asian_mark(c);
}

// Puts blanks around each character x for which pick(x) is true: x → " x ".
template <class Pick>
Characters set_apart(const Characters& text, Pick pick) {
  Characters result;
  result.reserve(2 * text.size());
  for (char32_t c : text) {
    if (pick(c)) {
      result += {U' ', c, U' '};
    } else {
      result += c;
    }
  }
  return result;
}

// If set_pairs_apart() finds a pair of adjacent characters x y, around which of the two it puts
// blanks. Pairs do not overlap; if they would, the leftmost pair counts.
enum class Blanks { around_first, around_second };

template <class First, class Second>
Characters set_pairs_apart(const Characters& text, First first, Second second, Blanks blanks) {
  Characters result;
  result.reserve(2 * text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (i + 1 < text.size() && first(text[i]) && second(text[i + 1])) {
      if (blanks == Blanks::around_first) {
        result += {U' ', text[i], U' ', text[i + 1]};
      } else {
        result += {text[i], U' ', text[i + 1], U' '};
      }
      ++i;
    } else {
      result += text[i];
    }
  }
  return result;
}

void replace_all(Characters& text, std::u32string_view what, std::u32string_view by) {
  for (size_t at = text.find(what); at != Characters::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
}

void unescape(Characters& text) {
  if (text.find(U'&') == Characters::npos) return;
  replace_all(text, U"&quot;", U"\"");
  replace_all(text, U"&amp;", U"&");
  replace_all(text, U"&lt;", U"<");
  replace_all(text, U"&gt;", U">");
}

// Separates punctuation from letters, but not inside numbers. "1,000.5" is not split, "end." and
// "a,b" are split, and "5-year" becomes "5 - year".
Characters set_numbers_apart(Characters text) {
  text = set_pairs_apart(text, is_not_digit, is_point_or_comma, Blanks::around_second);
  text = set_pairs_apart(text, is_point_or_comma, is_not_digit, Blanks::around_first);
  return set_pairs_apart(text, is_digit, is_hyphen, Blanks::around_second);
}

Characters western(const Characters& text) {
  return set_numbers_apart(set_apart(text, is_western_mark));
}

Characters mteval13(Characters text) {
  replace_all(text, U"<skipped>", U"");
  replace_all(text, U"-\n", U"");
  unescape(text);
  return western(U' ' + text + U' ');
}

Characters international(const Characters& line) {
  Characters text = set_pairs_apart(line, is_not_number, is_punctuation, Blanks::around_second);
  text = set_pairs_apart(text, is_punctuation, is_not_number, Blanks::around_first);
  return set_apart(text, is_symbol);
}

Characters chinese(const Characters& line) {
  auto first = std::find_if_not(line.begin(), line.end(), is_blank);
  return western(set_apart(without_trailing_blanks({first, line.end()}), is_chinese));
}

constexpr std::array<std::pair<std::string_view, BleuTokenizer>, 6> kNames{
    {{"none", BleuTokenizer::none},
     {"13a", BleuTokenizer::mteval13},
     {"intl", BleuTokenizer::intl},
     {"zh", BleuTokenizer::zh},
     {"char", BleuTokenizer::chars},
     {"auto", BleuTokenizer::automatic}}};

}  // namespace

BleuTokenizer bleu_tokenizer(std::string_view name) {
  for (const auto& [known, tokenizer] : kNames)
    if (known == name) return tokenizer;
  fail(ExitCode::usage, "unknown tokenizer '", name, "': choose auto, 13a, intl, zh, char or none");
}

std::string_view name_of(BleuTokenizer tokenizer) {
  return std::find_if(kNames.begin(), kNames.end(),
                      [=](const auto& entry) { return entry.second == tokenizer; })
      ->first;
}

BleuTokenizer tokenizer_of_language(std::string_view code) {
  const std::string_view primary = code.substr(0, code.find_first_of("-_"));
  for (const char* known : {"zh", "zt", "yue", "wuu", "lzh", "cmn", "zho"})
    if (primary == known) return BleuTokenizer::zh;
  for (const char* known :
       {"ja", "ko", "th", "lo", "km", "my", "jpn", "kor", "tha", "lao", "khm", "mya"})
    if (primary == known) return BleuTokenizer::chars;
  return BleuTokenizer::mteval13;
}

BleuTokenizer tokenizer_of_text(std::span<const std::string> references) {
  int64_t letters = 0, unspaced = 0, han = 0;
  for (const std::string& line : references)
    for (const char32_t c : code_points(line)) {
      if (!u_isalpha(static_cast<UChar32>(c))) continue;
      ++letters;
      if (!is_unspaced(c)) continue;
      ++unspaced;
      han += uscript_hasScript(static_cast<UChar32>(c), USCRIPT_HAN);
    }
  if (2 * unspaced <= letters) return BleuTokenizer::mteval13;
  // If almost all letters are Han, the text is Chinese: Japanese has at least one Kana in four
  // letters.
  return 10 * han > 9 * unspaced ? BleuTokenizer::zh : BleuTokenizer::chars;
}

BleuTokenizer resolved(BleuTokenizer tokenizer, std::span<const std::string> references) {
  return tokenizer == BleuTokenizer::automatic ? tokenizer_of_text(references) : tokenizer;
}

Characters tokenize_for_bleu(BleuTokenizer tokenizer, const Characters& line) {
  switch (tokenizer) {
    case BleuTokenizer::none:
      return line;
    case BleuTokenizer::mteval13:
      return mteval13(line);
    case BleuTokenizer::intl:
      return international(line);
    case BleuTokenizer::zh:
      return chinese(line);
    case BleuTokenizer::chars:
      return set_apart(line, [](char32_t) { return true; });
    case BleuTokenizer::automatic:
      assert(false && "automatic is resolved before text is tokenized");
  }
  return line;
}

Characters tokenize_for_ter(const TercomOptions& options, const Characters& line) {
  Characters text = options.case_sensitive ? line : lower_case(line);
  if (options.normalized) {
    replace_all(text, U"\n-", U"");
    replace_all(text, U"\n", U" ");
    unescape(text);
    text = set_apart(U' ' + text + U' ', is_western_mark);
    replace_all(text, U"'s ", U" 's ");
    text = set_numbers_apart(std::move(text));
    if (options.asian_support) text = set_apart(text, is_asian_word);
  }
  if (options.no_punct) {
    std::erase_if(text, [](char32_t c) {
      return std::u32string_view(U".,?:;!\"()").find(c) != std::u32string_view::npos;
    });
    if (options.asian_support) std::erase_if(text, is_asian_mark);
  }
  return text;
}

}  // namespace fovea
