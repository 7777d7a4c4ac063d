#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"
#include "text/vocabulary_table.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

// The NFKC form of a character, such as "fi" of "ﬁ"; "" if the form would change the meaning or the
// number of words: 4² would become 42, 1½ would become 11⁄2, ⑤ would become 5.
std::string compatible_form(char32_t c) {
  if (c == U'\u00B5') return "";  // the micro sign: its NFKC form is a Greek letter
  switch (u_getIntPropertyValue(static_cast<UChar32>(c), UCHAR_DECOMPOSITION_TYPE)) {
    case U_DT_NONE:
    case U_DT_CANONICAL:
    case U_DT_SUPER:
    case U_DT_SUB:
    case U_DT_FRACTION:
    case U_DT_CIRCLE:
      return "";
    default:
      break;
  }
  UErrorCode status = U_ZERO_ERROR;
  const icu::Normalizer2* normalizer = icu::Normalizer2::getNFKCInstance(status);
  check(U_SUCCESS(status), ExitCode::unexpected, "ICU has no NFKC data: ", u_errorName(status));
  const icu::UnicodeString character(static_cast<UChar32>(c));
  std::string form;
  normalizer->normalize(character, status).toUTF8String(form);
  const bool has_blank = std::ranges::any_of(
      code_points(form), [](char32_t f) { return u_isUWhiteSpace(static_cast<UChar32>(f)); });
  return U_FAILURE(status) || has_blank ? "" : form;
}

// Calls use(bytes of the character, code point) for each character of a text.
template <class Use>
void for_each_character(std::string_view text, Use use) {
  const CodePoints points = code_points(text);
  for (auto c = points.begin(); c != points.end(); ++c)
    use(text.substr(c.offset(), static_cast<size_t>(c.length())), *c);
}

}  // namespace

Vocabulary Vocabulary::with_compatible_characters() const {
  Vocabulary result = *this;
  result.compatible_ = true;
  return result;
}

// Replaces characters of a text without a piece by their compatible forms if these have pieces.
std::string Vocabulary::with_known_characters(std::string_view text) const {
  const auto has_piece = [&](std::string_view piece) { return table_->find(piece) != kUnk; };
  std::string result;
  for_each_character(text, [&](std::string_view character, char32_t c) {
    const std::string form = c < 0x80 || has_piece(character) ? "" : compatible_form(c);
    bool known = !form.empty();
    for_each_character(form, [&](std::string_view f, char32_t) { known = known && has_piece(f); });
    result += known ? std::string_view(form) : character;
  });
  return result;
}

// Replaces words of a text without a piece by their compatible forms if these have pieces.
std::string Vocabulary::with_known_words(std::string_view text) const {
  std::string result;
  size_t end = 0;
  for (const std::string_view word : split(cut(), text)) {
    if (table_->find(word) != kUnk) continue;
    std::string form;
    for_each_character(word, [&](std::string_view character, char32_t c) {
      const std::string compatible = compatible_form(c);
      form += compatible.empty() ? character : std::string_view(compatible);
    });
    if (table_->find(form) == kUnk) continue;
    const auto begin = static_cast<size_t>(word.data() - text.data());
    result.append(text, end, begin - end).append(form);
    end = begin + word.size();
  }
  return result.append(text, end);
}

std::string Vocabulary::prepare(std::string_view line) const {
  if (table_->imported) return replace_invalid_utf8(line);
  std::string text = prepared(cut(), line);
  if (!compatible_ || std::ranges::all_of(text, [](char c) { return c >= 0; })) return text;
  std::string known = has_whole_words() ? with_known_words(text) : with_known_characters(text);
  if (known == text) return text;
  return text_words(known).size() == text_words(text).size() ? known : text;
}

}  // namespace fovea
