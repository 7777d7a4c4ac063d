#include "serve/sentences.h"

#include <unicode/brkiter.h>
#include <unicode/uchar.h>
#include <unicode/utext.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <map>
#include <memory>

#include "base/utf8.h"

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

// The part of a stretch without the blanks at its ends.
std::string_view core_of(std::string_view text) {
  size_t begin = text.size(), end = 0;
  const auto all = code_points(text);
  for (auto i = all.begin(); i != all.end(); ++i) {
    if (is_blank(*i)) continue;
    begin = std::min(begin, i.offset());
    end = i.offset() + static_cast<size_t>(i.length());
  }
  return begin < end ? text.substr(begin, end - begin) : text.substr(0, 0);
}

// What stands before the point that ends a stretch, without what opens it: "Dr" of "saw (Dr. ".
// Only the end is looked at: in a line of abbreviations each must not cost the whole line.
std::string_view last_word(std::string_view text) {
  constexpr size_t kLongest = 64;  // longer words are no abbreviations
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

// "am 3." of a date: ordinal numbers end with a point in many languages.
bool is_ordinal(std::string_view word) {
  return (word.size() == 1 || word.size() == 2) &&
         std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
}

// Titles and initials that ICU's lists lack.
bool is_title(std::string_view word) {
  static constexpr std::string_view kTitles =
      " Dr St Mt Mme Mlle MM Hr Hrn Fr Frl Nr Str bzw ca evtl vgl Abs Art Nos No ";
  if (word.size() == 1) return word[0] >= 'A' && word[0] <= 'Z' && word[0] != 'I';
  return !word.empty() && kTitles.find(" " + std::string(word) + " ") != std::string_view::npos;
}

bool writes_ordinals(const std::string& language) {
  for (const char* known : {"de", "da", "nb", "cs", "sk", "pl", "hr", "sl", "sr", "fi", "et", "hu"})
    if (language == known) return true;
  return false;
}

// Where a sentence that is too long is cut: after the last comma of the second half of what is
// allowed, else after the last blank, else at a character.
size_t place_to_cut(std::string_view text) {
  const std::string_view head = text.substr(0, kLongestSentence);
  for (const std::string_view marks : {std::string_view(",;:"), std::string_view(" ")}) {
    const size_t at = head.find_last_of(marks);
    if (at != std::string_view::npos && at >= kLongestSentence / 2) return at + 1;
  }
  size_t at = kLongestSentence;
  while (at > 1 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

// The rules of a language. Making them takes a millisecond, so that each thread keeps its own.
icu::BreakIterator* rules_of(const std::string& language) {
  thread_local std::map<std::string, std::unique_ptr<icu::BreakIterator>> kept;
  auto& rules = kept[language];
  if (!rules) {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Locale locale((language + "@ss=standard").c_str());
    rules.reset(icu::BreakIterator::createSentenceInstance(locale, status));
    if (U_FAILURE(status)) rules.reset();
  }
  return rules.get();
}

class Splitter {
 public:
  explicit Splitter(const std::string& language)
      : rules_(rules_of(language)), ordinals_(writes_ordinals(language)) {}

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
    while (text.size() > kLongestSentence) {
      const size_t cut = place_to_cut(text);
      add_whole(text.substr(0, cut));
      text.remove_prefix(cut);
    }
    add_whole(text);
  }

  void between(std::string_view text) {
    if (!text.empty()) stretches_.push_back({text, false});
  }

  std::vector<Stretch> take() { return std::move(stretches_); }

 private:
  std::vector<size_t> ends_in(std::string_view line) {
    if (!rules_) return {line.size()};
    UErrorCode status = U_ZERO_ERROR;
    UText* const text =
        utext_openUTF8(nullptr, line.data(), static_cast<int64_t>(line.size()), &status);
    std::vector<size_t> ends;
    if (U_SUCCESS(status)) rules_->setText(text, status);
    if (U_SUCCESS(status)) {
      rules_->first();
      for (int32_t at = rules_->next(); at != icu::BreakIterator::DONE; at = rules_->next())
        ends.push_back(static_cast<size_t>(at));
    }
    utext_close(text);
    if (ends.empty()) ends.push_back(line.size());
    return ends;
  }

  void add_whole(std::string_view text) {
    const std::string_view core = core_of(text);
    if (!has_word(core)) return between(text);
    const size_t before = static_cast<size_t>(core.data() - text.data());
    between(text.substr(0, before));
    stretches_.push_back({core, true});
    between(text.substr(before + core.size()));
  }

  icu::BreakIterator* rules_;
  std::vector<Stretch> stretches_;
  bool ordinals_;
};

}  // namespace

std::vector<Stretch> split_sentences(std::string_view text, const std::string& language) {
  Splitter splitter(language);
  while (!text.empty()) {
    const size_t end = std::min(text.find_first_of("\n\r"), text.size());
    splitter.split_line(text.substr(0, end));
    const size_t next = std::min(text.find_first_not_of("\n\r", end), text.size());
    splitter.between(text.substr(end, next - end));
    text.remove_prefix(next);
  }
  return splitter.take();
}

}  // namespace fovea
