#include "text/sentences.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>

#include "base/ascii.h"
#include "base/icu_breaks.h"
#include "base/utf8.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

bool is_blank(char32_t c) {
  return u_isUWhiteSpace(static_cast<UChar32>(c)) || u_iscntrl(static_cast<UChar32>(c));
}

bool has_word(std::string_view text) {
  for (const char32_t c : code_points(text))
    if (u_isalnum(static_cast<UChar32>(c))) return true;
  return false;
}

// The text without the blanks at its ends.
std::string_view trimmed(std::string_view text) {
  size_t begin = text.size(), end = 0;
  const auto all = code_points(text);
  for (auto i = all.begin(); i != all.end(); ++i) {
    if (is_blank(*i)) continue;
    begin = std::min(begin, i.offset());
    end = i.offset() + static_cast<size_t>(i.length());
  }
  return begin < end ? text.substr(begin, end - begin) : text.substr(0, 0);
}

// The word before the final period of a text, without an opening bracket: "Dr" of "saw (Dr. ".
// Empty if the text does not end with a period. Reads only the end of the text, because otherwise a
// line of many abbreviations would take quadratic time.
std::string_view last_word(std::string_view text) {
  constexpr size_t kLongest = 64;  // longer words are not abbreviations
  for (auto at = static_cast<int32_t>(text.size()); at > 0;) {
    UChar32 c;
    U8_PREV(text.data(), 0, at, c);
    if (!is_blank(static_cast<char32_t>(c))) break;
    text = text.substr(0, static_cast<size_t>(at));
  }
  if (!text.ends_with('.')) return {};
  text.remove_suffix(1);
  text.remove_prefix(text.size() - std::min(text.size(), kLongest));
  text.remove_prefix(text.find_last_of(" \t") + 1);
  text.remove_prefix(std::min(text.find_first_not_of("([\"'"), text.size()));
  return text;
}

// Whether a word is an ordinal number such as "3" in the date "am 3. Mai". In many languages
// ordinal numbers end with a period.
bool is_ordinal(std::string_view word) {
  return (word.size() == 1 || word.size() == 2) &&
         std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// Whether a word is a title or an initial that ICU's lists of abbreviations lack.
bool is_title(std::string_view word) {
  static constexpr std::string_view kTitles =
      " Dr St Mt Mme Mlle MM Hr Hrn Fr Frl Nr Str bzw ca evtl vgl Abs Art Nos No ";
  if (word.size() == 1) return word[0] >= 'A' && word[0] <= 'Z' && word[0] != 'I';
  return !word.empty() && list_has(kTitles, word);
}

bool writes_ordinals(const std::string& language) {
  for (const char* known : {"de", "da", "nb", "cs", "sk", "pl", "hr", "sl", "sr", "fi", "et", "hu"})
    if (language == known) return true;
  return false;
}

// Whether a long sentence may be cut after `mark`. It may not after ASCII marks inside numbers
// (3,000).
bool allows_cut(char32_t mark, char32_t next) {
  switch (mark) {
    case U'，':
    case U'、':
    case U'；':
    case U'：':
    case U'､':
      return true;
    case ',':
    case ';':
    case ':':
      return !u_isdigit(static_cast<UChar32>(next));
    default:
      return false;
  }
}

// The last grapheme boundary at or before the offset `size`; 0 if there is none.
size_t grapheme_before(std::string_view text, size_t size) {
  constexpr size_t kAhead = 64;  // bytes; enough to find the end of the grapheme at `size`
  const std::vector<size_t> ends = grapheme_ends(text.substr(0, size + kAhead));
  const auto after = std::ranges::upper_bound(ends, size);
  return after == ends.begin() ? 0 : *std::prev(after);
}

// Returns the offset at which a sentence that is too long is cut. `size` is the allowed size. The
// cut is in the second half of `size`: after the last comma, else after the last blank, else after
// the last word. If there is none of these, the cut is after the last grapheme.
size_t cut_position(std::string_view text, size_t size) {
  size_t comma = 0, blank = 0;
  const CodePoints points = code_points(text.substr(0, size));
  for (auto c = points.begin(); c != points.end(); ++c) {
    const size_t end = c.offset() + static_cast<size_t>(c.length());
    if (allows_cut(*c, first_code_point(text.substr(end)))) comma = end;
    if (u_isUWhiteSpace(static_cast<UChar32>(*c)))
      blank = end;  // U+200D, which joins emoji, is no white space
  }
  const size_t half = size / 2;
  if (comma > half) return comma;
  if (blank > half) return blank;
  const std::vector<size_t> words = word_breaks(text.substr(0, size));
  if (!words.empty() && words.back() > half) return words.back();
  const size_t grapheme = grapheme_before(text, size);
  return grapheme > 0 ? grapheme : size;
}

// Returns whether a character is a closing quote or bracket.
bool closes(char32_t c) {
  const auto type = u_charType(static_cast<UChar32>(c));
  return type == U_END_PUNCTUATION || type == U_FINAL_PUNCTUATION || c == '"' || c == '\'';
}

// Moves the end of a sentence before an opening quote or bracket that touches the end (。「), if a
// Chinese or Japanese letter follows. The bracket belongs to the next sentence, but UAX 29 assigns
// it to the first one.
size_t before_opening(std::string_view line, size_t end) {
  if (!is_east_asian(first_code_point(line.substr(end)))) return end;
  for (;;) {
    auto at = static_cast<int32_t>(end);
    UChar32 c = 0;
    if (at > 0) U8_PREV(line.data(), 0, at, c);
    const auto type = u_charType(c);
    if (type != U_START_PUNCTUATION && type != U_INITIAL_PUNCTUATION) return end;
    end = static_cast<size_t>(at);
  }
}

// Returns the sentence ends that UAX 29 lacks: after …… before a Chinese or Japanese letter.
std::vector<size_t> ends_at_dots(std::string_view line) {
  std::vector<size_t> ends;
  int dots = 0;
  const CodePoints points = code_points(line);
  for (auto c = points.begin(); c != points.end(); ++c) {
    if (*c == U'…' || *c == U'⋯') {
      ++dots;
      continue;
    }
    if (dots > 1 && closes(*c)) continue;
    if (dots > 1 && is_east_asian(*c) && u_isalnum(static_cast<UChar32>(*c)))
      ends.push_back(c.offset());
    dots = 0;
  }
  return ends;
}

// ICU's sentence rules of a language; null if ICU has none. Each thread caches its own rules,
// because their creation takes a millisecond.
icu::BreakIterator* rules_of(const std::string& language) {
  thread_local std::map<std::string, std::unique_ptr<icu::BreakIterator>> cache;
  auto& rules = cache[language];
  if (!rules) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Locale locale((language + "@ss=standard").c_str());
    rules.reset(icu::BreakIterator::createSentenceInstance(locale, status));
    if (U_FAILURE(status)) rules.reset();
  }
  return rules.get();
}

// Splits the lines of a text into spans.
class SentenceSplitter {
 public:
  SentenceSplitter(const std::string& language, const SentenceLimit& limit)
      : rules_(rules_of(language)), limit_(limit), ordinals_(writes_ordinals(language)) {}

  void split_line(std::string_view line) {
    size_t begin = 0;
    for (const size_t end : ends_in(line)) {
      const std::string_view last = last_word(line.substr(begin, end - begin));
      if (end < line.size() && (is_title(last) || (ordinals_ && is_ordinal(last)))) continue;
      add(line.substr(begin, end - begin));
      begin = end;
    }
    add(line.substr(begin));
  }

  void add(std::string_view text) {
    while (!limit_.holds(text)) {
      const size_t cut = cut_position(text, limit_.head(text));
      add_sentence(text.substr(0, cut));
      text.remove_prefix(cut);
    }
    add_sentence(text);
  }

  void add_gap(std::string_view text) {
    if (!text.empty()) spans_.push_back({text, false});
  }

  std::vector<TextSpan> take() { return std::move(spans_); }

 private:
  std::vector<size_t> ends_in(std::string_view line) {
    std::vector<size_t> ends = icu_breaks(rules_, line), all;
    if (ends.empty()) ends.push_back(line.size());
    for (size_t& end : ends) end = before_opening(line, end);
    std::ranges::set_union(ends, ends_at_dots(line), std::back_inserter(all));
    return all;
  }

  void add_sentence(std::string_view text) {
    const std::string_view core = trimmed(text);
    if (!has_word(core)) return add_gap(text);
    const size_t before = static_cast<size_t>(core.data() - text.data());
    add_gap(text.substr(0, before));
    spans_.push_back({core, true});
    add_gap(text.substr(before + core.size()));
  }

  icu::BreakIterator* rules_;
  const SentenceLimit& limit_;
  std::vector<TextSpan> spans_;
  bool ordinals_;
};

}  // namespace

bool SentenceLimit::holds(std::string_view text) const {
  if (text.size() > kBytes) return false;
  // A piece has at least one byte; the blank before the first word may be an additional piece.
  return !vocabulary || text.size() < pieces || vocabulary->encode(text).size() <= pieces;
}

size_t SentenceLimit::head(std::string_view text) const {
  const auto at_code_point = [&](size_t size) {
    while (size > 0 && size < text.size() &&
           (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80)
      --size;
    return size > 0 ? size : static_cast<size_t>(decode_utf8(text, 0).length);
  };
  size_t size = at_code_point(std::min(text.size(), kBytes));
  while (vocabulary && size >= pieces && size > 1) {
    const size_t found = vocabulary->encode(text.substr(0, size)).size();
    if (found <= pieces) break;
    const size_t smaller = at_code_point(std::max<size_t>(1, size * pieces / found));
    if (smaller >= size) break;  // even a single character has too many pieces
    size = smaller;
  }
  return size;
}

std::vector<TextSpan> split_sentences(std::string_view text, const std::string& language,
                                      const SentenceLimit& limit) {
  SentenceSplitter splitter(language, limit);
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\r"), text.size());
    splitter.split_line(text.substr(0, end));
    const size_t next = std::min(text.find_first_not_of("\n\r", end), text.size());
    splitter.add_gap(text.substr(end, next - end));
    text.remove_prefix(next);
  }
  return splitter.take();
}

}  // namespace fovea
