#include "document/markup.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/ascii.h"
#include "base/utf8.h"
#include "document/html_entities.h"
#include "document/html_tokens.h"

namespace fovea {
namespace {

using Kind = MarkupToken::Kind;

// Elements that occur inside a sentence.
constexpr std::string_view kInline =
    " a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q s small span "
    "strike strong sub sup time tt u ";
constexpr std::string_view kLone = " img wbr input ";
// Elements with content that is not translated.
constexpr std::string_view kVerbatim = " template svg math code kbd samp var pre object ";
// Elements that have no content and no closing tag.
constexpr std::string_view kEmpty =
    " area base br col embed hr img input link meta source track wbr ";

bool is_verbatim(const HtmlToken& tag) {
  if (tag.kind != HtmlToken::Kind::start_tag || tag.self_closing) return false;
  return list_has(kVerbatim, tag.name) || (tag.translate_no && !list_has(kEmpty, tag.name));
}

// Returns the kind of a tag. Tags of kind `fixed` stay in place, and others may move with their
// words. A tag may move only if a browser reads it as the same HTML tag at every position between
// two fixed tokens (Note [Certain context] in html_tokens.cpp).
Kind kind_of(const HtmlToken& tag) {
  if (!tag.in_certain_context) return Kind::fixed;
  if (list_has(kLone, tag.name)) return Kind::lone;
  if (!list_has(kInline, tag.name)) return Kind::fixed;
  return tag.kind == HtmlToken::Kind::start_tag ? Kind::opening : Kind::closing;
}

// Whether the text is a symbol, such as an arrow or a heart. Models often omit symbols.
bool is_symbol(const std::string& text) {
  const CodePoint c = decode_utf8(text, 0);
  const auto type = u_charType(static_cast<UChar32>(c.value));
  return c.value >= 0x80 && static_cast<size_t>(c.length) == text.size() &&
         (type == U_OTHER_SYMBOL || type == U_MATH_SYMBOL);
}

bool is_of_word(char c) { return is_ascii_alnum(c) || (c & 0x80) != 0; }

// Returns the token that begins with the '&' at `at`. Unknown references are not translated.
// Symbols are not translated either, except inside a word: 20&deg;C.
MarkupToken sign_at(std::string_view html, size_t at) {
  const CharacterReference found = reference_at(html.substr(at));
  const size_t end = at + std::max<size_t>(found.length, 1);
  const bool inside =
      at > 0 && is_of_word(html[at - 1]) && end < html.size() && is_of_word(html[end]);
  const bool lone = found.length > 0 && (found.text.empty() || (!inside && is_symbol(found.text)));
  return {lone ? Kind::lone : Kind::text, html.substr(at, end - at)};
}

// Appends the tokens of the text from `begin` to the end. Each reference that is not text becomes a
// separate token.
void cut_text(std::string_view html, size_t begin, std::vector<MarkupToken>& tokens) {
  const auto add = [&](MarkupToken token) {
    const bool joins =
        token.kind == Kind::text && !tokens.empty() && tokens.back().kind == Kind::text;
    if (!joins) return tokens.push_back(std::move(token));
    const std::string_view before = tokens.back().bytes;
    tokens.back().bytes = {before.data(), before.size() + token.bytes.size()};
  };
  for (size_t at = begin; at < html.size();) {
    const size_t next = std::min(html.find('&', at), html.size());
    if (next > at) add({Kind::text, html.substr(at, next - at)});
    if (next == html.size()) break;
    const MarkupToken sign = sign_at(html, next);
    at = next + sign.bytes.size();
    add(sign);
  }
}

}  // namespace

std::vector<MarkupToken> cut_markup(std::string_view html) {
  std::vector<MarkupToken> tokens;
  std::string verbatim;  // name of the open element whose content is copied; "" if there is none
  size_t depth = 0;      // the number of open elements of that name
  for (const HtmlToken& token : html_tokens(html)) {
    const bool is_tag =
        token.kind == HtmlToken::Kind::start_tag || token.kind == HtmlToken::Kind::end_tag;
    if (depth > 0) {
      const std::string_view before = tokens.back().bytes;
      tokens.back().bytes = {before.data(), before.size() + token.bytes.size()};
      if (!is_tag || token.name != verbatim) continue;
      if (token.kind == HtmlToken::Kind::end_tag) --depth;
      if (token.kind == HtmlToken::Kind::start_tag && !token.self_closing) ++depth;
    } else if (is_verbatim(token)) {
      tokens.push_back({Kind::fixed, token.bytes, token.name});
      verbatim = token.name;
      depth = 1;
    } else if (token.kind == HtmlToken::Kind::text) {
      const auto begin = static_cast<size_t>(token.bytes.data() - html.data());
      cut_text(html.substr(0, begin + token.bytes.size()), begin, tokens);
    } else {
      tokens.push_back({is_tag ? kind_of(token) : Kind::fixed, token.bytes, token.name});
    }
  }
  return tokens;
}

std::string text_of_markup(std::string_view html) {
  std::string text;
  for (const MarkupToken& token : cut_markup(html)) {
    if (token.kind == Kind::text) text += without_entities(token.bytes);
    if (token.kind == Kind::fixed) text += '\n';
  }
  return text;
}

}  // namespace fovea
