#include "serve/markup.h"

#include <unicode/uchar.h>

#include <algorithm>

#include "base/utf8.h"
#include "serve/entities.h"
#include "serve/http.h"

namespace fovea {
namespace {

using Kind = MarkupToken::Kind;

// Elements that stand inside a sentence.
constexpr std::string_view kInline =
    " a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q s small span "
    "strike strong sub sup time tt u ";
constexpr std::string_view kLone = " img wbr input ";
// Elements whose content is nobody's language.
constexpr std::string_view kVerbatim =
    " script style template svg math code kbd samp var pre noscript object iframe textarea ";
// Those of them that hold text alone, whatever it looks like.
constexpr std::string_view kRaw = " script style iframe textarea ";
// Elements that have no content and no closing tag.
constexpr std::string_view kEmpty =
    " area base br col embed hr img input link meta source track wbr ";
constexpr std::string_view kBlanks = " \t\r\n\f";

bool in_list(std::string_view list, const std::string& name) {
  return list.find(" " + name + " ") != std::string_view::npos;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// The end of a tag that begins at `at`; npos where it has none. Quotes after a '=' are looked
// through.
size_t end_of_tag(std::string_view html, size_t at) {
  char quote = 0, before = 0;
  for (size_t i = at; i < html.size(); ++i) {
    const char c = html[i];
    if (quote) {
      quote = c == quote ? 0 : quote;
    } else if ((c == '"' || c == '\'') && before == '=') {
      quote = c;
    } else if (c == '>') {
      return i + 1;
    }
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r') before = c;
  }
  return std::string_view::npos;
}

size_t after(std::string_view html, std::string_view mark, size_t from) {
  const size_t at = html.find(mark, from);
  return at == std::string_view::npos ? html.size() : at + mark.size();
}

// Whether a tag of this element, opening or closing, begins after `mark` at `at`.
bool begins_tag(std::string_view html, size_t at, std::string_view mark, const std::string& name) {
  const std::string_view rest = html.substr(at);
  if (!rest.starts_with(mark) || lower(rest.substr(mark.size(), name.size())) != name) return false;
  const size_t next = mark.size() + name.size();
  return next >= rest.size() || !is_letter(rest[next]);
}

// The end of the comment at `at`, where browsers see it: <!--> is one, and --!> ends one, too.
size_t end_of_comment(std::string_view html, size_t at) {
  return std::min(after(html, "-->", at + 2), after(html, "--!>", at + 4));
}

// The end of an element whose content is not markup, its closing tag included.
size_t end_of_raw(std::string_view html, const std::string& name, size_t from) {
  for (size_t at = html.find('<', from); at < html.size(); at = html.find('<', at + 1))
    if (begins_tag(html, at, "</", name)) return std::min(end_of_tag(html, at + 2), html.size());
  return html.size();
}

// The end of an element whose content stays as it is, its closing tag included; elements of its
// name inside it have their own. What stands in quotes or comments is no tag: were it taken for
// one, text that browsers see in an attribute would be translated, and its quotes with it.
size_t end_of_verbatim(std::string_view html, const std::string& name, size_t from) {
  if (in_list(kRaw, name)) return end_of_raw(html, name, from);
  size_t depth = 1, end = from;
  for (size_t at = html.find('<', from); at < html.size(); at = html.find('<', end)) {
    end = at + 1;
    const bool comment = html.substr(at).starts_with("<!--");
    const size_t name_at = html.substr(at).starts_with("</") ? at + 2 : at + 1;
    if (comment) end = end_of_comment(html, at);
    if (comment || name_at >= html.size() || !is_letter(html[name_at])) continue;
    end = std::min(end_of_tag(html, name_at), html.size());
    const bool closes = begins_tag(html, at, "</", name);
    if (!closes && !begins_tag(html, at, "<", name)) continue;
    if (!closes && html.substr(0, end).ends_with("/>")) continue;
    depth = closes ? depth - 1 : depth + 1;
    if (depth == 0) return end;
  }
  return html.size();
}

// translate="no", in any quotes or none.
bool is_not_translated(std::string_view tag) {
  constexpr std::string_view kName = "translate";
  const std::string text = lower(tag);
  for (size_t at = text.find(kName); at < text.size(); at = text.find(kName, at + kName.size())) {
    const size_t sign = text.find_first_not_of(kBlanks, at + kName.size());
    if (kBlanks.find(text[at - 1]) == kBlanks.npos || text[sign] != '=') continue;
    const size_t value = text.find_first_not_of(" \t\r\n\f\"'", sign + 1);
    if (text.substr(value, 2) == "no" && !is_letter(text[value + 2])) return true;
  }
  return false;
}

// The token at '<', which is text of one character where no tag begins. No tag ends after `last`,
// and none is looked for there, each time to the end of a long text.
MarkupToken tag_at(std::string_view html, size_t at, size_t last) {
  const std::string_view rest = html.substr(at);
  const auto fixed = [&](size_t end) { return MarkupToken{Kind::fixed, rest.substr(0, end)}; };
  if (rest.starts_with("<!--")) return fixed(end_of_comment(rest, 0));
  if (rest.starts_with("<![CDATA[")) return fixed(after(rest, "]]>", 9));
  if (rest.starts_with("<!") || rest.starts_with("<?")) return fixed(after(rest, ">", 2));
  const bool closing = rest.starts_with("</");
  const size_t name_at = closing ? 2 : 1;
  if (at + name_at >= last || !is_letter(rest[name_at])) return {Kind::text, rest.substr(0, 1)};
  const size_t end = end_of_tag(rest, name_at);
  if (end == std::string_view::npos) return fixed(end);  // all the rest, as in a browser
  const std::string_view tag = rest.substr(0, end);
  const size_t name_end = std::min(tag.find_first_of(" \t\r\n\f/>", name_at), tag.size());
  const std::string name = lower(tag.substr(name_at, name_end - name_at));
  const bool alone = tag.ends_with("/>");
  const bool verbatim =
      in_list(kVerbatim, name) || (!in_list(kEmpty, name) && is_not_translated(tag));
  if (!closing && !alone && verbatim) return fixed(end_of_verbatim(rest, name, end));
  if (in_list(kLone, name)) return {Kind::lone, tag, name};
  if (!in_list(kInline, name)) return {Kind::fixed, tag, name};
  return {alone ? Kind::lone : closing ? Kind::closing : Kind::opening, tag, name};
}

// Arrows, hearts and the like: models drop them.
bool is_symbol(const std::string& text) {
  const CodePoint c = decode_utf8(text, 0);
  const auto type = u_charType(static_cast<UChar32>(c.value));
  return c.value >= 0x80 && static_cast<size_t>(c.length) == text.size() &&
         (type == U_OTHER_SYMBOL || type == U_MATH_SYMBOL);
}

bool is_of_word(char c) { return is_letter(c) || (c >= '0' && c <= '9') || (c & 0x80) != 0; }

// The token at '&'. A reference that nobody knows is nothing to translate, and neither is a symbol,
// unless it is inside of a word: 20&deg;C.
MarkupToken sign_at(std::string_view html, size_t at) {
  const Reference found = reference_at(html.substr(at));
  const size_t end = at + std::max<size_t>(found.length, 1);
  const bool inside =
      at > 0 && is_of_word(html[at - 1]) && end < html.size() && is_of_word(html[end]);
  const bool lone = found.length > 0 && (found.text.empty() || (!inside && is_symbol(found.text)));
  return {lone ? Kind::lone : Kind::text, html.substr(at, end - at)};
}

}  // namespace

std::vector<MarkupToken> cut_markup(std::string_view html) {
  std::vector<MarkupToken> tokens;
  const size_t last = html.rfind('>') + 1;
  for (size_t at = 0; at < html.size();) {
    const size_t next = std::min(html.find_first_of("<&", at), html.size());
    MarkupToken token = next > at         ? MarkupToken{Kind::text, html.substr(at, next - at)}
                        : html[at] == '<' ? tag_at(html, at, last)
                                          : sign_at(html, at);
    at += token.bytes.size();
    const bool joins =
        token.kind == Kind::text && !tokens.empty() && tokens.back().kind == Kind::text;
    if (joins) {
      const std::string_view before = tokens.back().bytes;
      tokens.back().bytes = {before.data(), before.size() + token.bytes.size()};
    } else {
      tokens.push_back(std::move(token));
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
