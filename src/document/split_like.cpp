#include "document/split_like.h"

#include <unicode/uchar.h>
#include <unicode/utf8.h>

#include <algorithm>
#include <tuple>

#include "base/utf8.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// Words with more parts are not searched: the time is proportional to parts × letters.
constexpr size_t kMaxParts = 16;

enum class CharacterClass { letter, digit, other };

CharacterClass class_of(UChar32 c) {
  return u_isalpha(c)   ? CharacterClass::letter
         : u_isdigit(c) ? CharacterClass::digit
                        : CharacterClass::other;
}

CharacterClass class_after(std::string_view text, size_t at) {
  return class_of(static_cast<UChar32>(decode_utf8(text, at).value));
}

CharacterClass class_before(std::string_view text, size_t at) {
  auto offset = static_cast<int32_t>(at);
  UChar32 c;
  U8_PREV(text.data(), 0, offset, c);
  return class_of(c);
}

// Whether `at` is inside a word or a number.
bool is_inside_word(std::string_view text, size_t at) {
  if (at == 0 || at >= text.size()) return false;
  const CharacterClass before = class_before(text, at);
  return before != CharacterClass::other && before == class_after(text, at);
}

// Finds `part` as a whole word from `from` on, not the "a" of "small". npos: not found.
size_t find_whole(std::string_view text, std::string_view part, size_t from) {
  for (size_t at = text.find(part, from); at < text.size(); at = text.find(part, at + 1))
    if (!is_inside_word(text, at) && !is_inside_word(text, at + part.size())) return at;
  return std::string_view::npos;
}

int64_t letters_of(std::string_view text) {
  return std::ranges::count_if(code_points(text), [](char32_t c) {
    return class_of(static_cast<UChar32>(c)) != CharacterClass::other;
  });
}

// The element that receives the text in place of the unmatched `parts`: that of the part with the
// most letters, preferring parts with letters inside an element.
int64_t main_element(std::span<const HtmlPart> parts, std::string_view text) {
  std::tuple<bool, int64_t> most{false, -1};
  int64_t element = kNoElement;
  for (const HtmlPart& part : parts) {
    const int64_t letters = letters_of(text.substr(part.begin, part.end - part.begin));
    const std::tuple<bool, int64_t> now{letters > 0 && part.element >= 0, letters};
    if (now <= most) continue;
    most = now;
    element = part.element;
  }
  return element;
}

// Appends the text that replaces unmatched parts. Several words are distributed over the parts with
// letters. A single word is not split.
void add_replacement(std::span<const HtmlPart> parts, std::string_view text, std::string_view words,
                     size_t begin, std::vector<HtmlPart>& cut) {
  std::vector<HtmlPart> wordy;
  for (const HtmlPart& part : parts)
    if (letters_of(text.substr(part.begin, part.end - part.begin)) > 0) wordy.push_back(part);
  const auto all = text_words(words);
  if (wordy.size() < 2 || all.size() < wordy.size()) {
    cut.push_back({begin, begin + words.size(), main_element(parts, text)});
    return;
  }
  size_t done = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool last = i + 1 == all.size();
    const size_t end = last ? words.size() : static_cast<size_t>(all[i].end() - words.begin());
    cut.push_back({begin + done, begin + end, wordy[i * wordy.size() / all.size()].element});
    done = end;
  }
}

std::vector<HtmlPart> split_at_unchanged(std::span<const HtmlPart> parts, std::string_view text,
                                         std::string_view translation) {
  std::vector<HtmlPart> cut;
  size_t done = 0, missed = 0;  // bytes of the translation; the first unmatched part
  const auto fill = [&](size_t begin, size_t part) {
    if (begin == done) return;
    const auto between = parts.subspan(missed, part - missed);
    const int64_t beside = !cut.empty() ? cut.back().element : parts[part % parts.size()].element;
    if (between.empty())
      cut.push_back({done, begin, beside});
    else
      add_replacement(between, text, translation.substr(done, begin - done), done, cut);
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string_view part = text.substr(parts[i].begin, parts[i].end - parts[i].begin);
    const size_t at = find_whole(translation, part, done);
    if (at == std::string_view::npos) continue;
    fill(at, i);
    cut.push_back({at, at + part.size(), parts[i].element});
    done = at + part.size();
    missed = i + 1;
  }
  fill(translation.size(), parts.size());
  return cut;
}

}  // namespace

std::vector<HtmlPart> split_like(std::span<const HtmlPart> parts, std::string_view text,
                                 std::string_view translation) {
  if (parts.size() == 1) return {{0, translation.size(), parts.front().element}};
  const size_t begin = parts.front().begin;
  if (text.substr(begin, parts.back().end - begin) == translation) {
    std::vector<HtmlPart> same;
    for (const HtmlPart& part : parts)
      same.push_back({part.begin - begin, part.end - begin, part.element});
    return same;
  }
  if (parts.size() > kMaxParts) return {{0, translation.size(), main_element(parts, text)}};
  return split_at_unchanged(parts, text, translation);
}

}  // namespace fovea
