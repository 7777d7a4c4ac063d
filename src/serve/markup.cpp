#include "serve/markup.h"

#include <algorithm>
#include <charconv>

#include "base/utf8.h"
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

// The names of U+00A0 … U+00FF in order.
constexpr std::string_view kLatin1 =
    "nbsp iexcl cent pound curren yen brvbar sect uml copy ordf laquo not shy reg macr deg plusmn "
    "sup2 sup3 acute micro para middot cedil sup1 ordm raquo frac14 frac12 frac34 iquest Agrave "
    "Aacute Acirc Atilde Auml Aring AElig Ccedil Egrave Eacute Ecirc Euml Igrave Iacute Icirc Iuml "
    "ETH Ntilde Ograve Oacute Ocirc Otilde Ouml times Oslash Ugrave Uacute Ucirc Uuml Yacute THORN "
    "szlig agrave aacute acirc atilde auml aring aelig ccedil egrave eacute ecirc euml igrave "
    "iacute "
    "icirc iuml eth ntilde ograve oacute ocirc otilde ouml divide oslash ugrave uacute ucirc uuml "
    "yacute thorn yuml";
constexpr std::pair<std::string_view, char32_t> kOthers[] = {
    {"amp", U'&'},       {"lt", U'<'},          {"gt", U'>'},       {"quot", U'"'},
    {"apos", U'\''},     {"ndash", U'–'},       {"mdash", U'—'},    {"hellip", U'…'},
    {"lsquo", U'‘'},     {"rsquo", U'’'},       {"sbquo", U'‚'},    {"ldquo", U'“'},
    {"rdquo", U'”'},     {"bdquo", U'„'},       {"lsaquo", U'‹'},   {"rsaquo", U'›'},
    {"bull", U'•'},      {"euro", U'€'},        {"trade", U'™'},    {"oelig", U'œ'},
    {"OElig", U'Œ'},     {"scaron", U'š'},      {"Scaron", U'Š'},   {"ensp", U'\u2002'},
    {"emsp", U'\u2003'}, {"thinsp", U'\u2009'}, {"zwj", U'\u200D'}, {"zwnj", U'\u200C'},
};

constexpr size_t kLongestEntity = 13;  // with & and ;

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

// The end of an element whose content stays as it is, its closing tag included; elements of its
// name inside it have their own.
size_t end_of_verbatim(std::string_view html, const std::string& name, size_t from) {
  const bool nests = !in_list(kRaw, name);
  size_t depth = 1, end = from;
  for (size_t at = html.find('<', from); at < html.size(); at = html.find('<', end)) {
    const bool closes = begins_tag(html, at, "</", name);
    end = at + 1;
    if (!closes && !(nests && begins_tag(html, at, "<", name))) continue;
    end = after(html, ">", at);
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
  if (rest.starts_with("<!--")) return fixed(after(rest, "-->", 4));
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

// The character of an entity without & and ; or 0.
char32_t entity(std::string_view name) {
  if (name.starts_with('#')) {
    const bool hex = name.size() > 1 && (name[1] == 'x' || name[1] == 'X');
    const std::string_view digits = name.substr(hex ? 2 : 1);
    uint32_t code = 0;
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), code, hex ? 16 : 10);
    const bool whole = error == std::errc() && end == digits.data() + digits.size();
    const bool scalar = code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
    return whole && !digits.empty() && scalar ? static_cast<char32_t>(code) : 0;
  }
  for (const auto& [known, value] : kOthers)
    if (known == name) return value;
  char32_t value = 0xA0;
  for (std::string_view names = kLatin1; !names.empty(); ++value) {
    const size_t end = std::min(names.find(' '), names.size());
    if (names.substr(0, end) == name) return value;
    names.remove_prefix(std::min(end + 1, names.size()));
  }
  return 0;
}

}  // namespace

std::vector<MarkupToken> cut_markup(std::string_view html) {
  std::vector<MarkupToken> tokens;
  const size_t last = html.rfind('>') + 1;
  for (size_t at = 0; at < html.size();) {
    const size_t next = std::min(html.find('<', at), html.size());
    MarkupToken token =
        next > at ? MarkupToken{Kind::text, html.substr(at, next - at)} : tag_at(html, at, last);
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

std::string without_entities(std::string_view html) {
  std::string text;
  for (size_t at = 0; at < html.size();) {
    const std::string_view near = html.substr(at, html[at] == '&' ? kLongestEntity : 0);
    const size_t length = near.find(';');
    const char32_t c = length == near.npos ? 0 : entity(near.substr(1, length - 1));
    if (c)
      append_utf8(text, c);
    else
      text += html[at];
    at += c ? length + 1 : 1;
  }
  return text;
}

std::string with_entities(std::string_view text) {
  std::string html;
  for (const char c : text)
    html += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return html;
}

}  // namespace fovea
