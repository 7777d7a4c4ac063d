#include "document/html_entities.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/ascii.h"
#include "base/utf8.h"

namespace fovea {
namespace {

using Names = std::vector<std::pair<std::string_view, std::string>>;

// Returns the names of the references of HTML 5 with their texts, sorted by name.
const Names& names() {
  static const Names all = [] {
    Names found;
    for (std::string_view rest = html_entities(); !rest.empty();) {
      std::string_view line = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(line.size() + 1);
      if (line.starts_with('#')) continue;
      auto& [name, text] = found.emplace_back(line.substr(0, line.find(' ')), "");
      for (line.remove_prefix(name.size()); !line.empty();) {
        uint32_t code = 0;
        const auto end = std::from_chars(line.data() + 1, line.data() + line.size(), code, 16).ptr;
        append_utf8(text, code);
        line.remove_prefix(static_cast<size_t>(end - line.data()));
      }
    }
    return found;
  }();
  return all;
}

// Whether a reference is one of HTML 2 or 3. Old pages omit the ';' of these references, and
// browsers accept them without it.
bool needs_no_semicolon(std::string_view name, std::string_view text) {
  static constexpr std::string_view kOld = " amp lt gt quot AMP LT GT QUOT ";
  if (list_has(kOld, name)) return true;
  static constexpr std::string_view kYounger =
      " NonBreakingSpace Dot DoubleDot die circledR strns pm PlusMinus DiacriticalAcute centerdot "
      "CenterDot Cedilla half angst div ";
  const char32_t c = decode_utf8(text, 0).value;
  return c >= 0xA0 && c <= 0xFF && text.size() == 2 && !list_has(kYounger, name);
}

// Reads a numeric reference such as "&#228;" or "&#xE4;".
CharacterReference numeric(std::string_view html) {
  // The characters 0x80 to 0x9F of Windows-1252. Old pages use these numbers, and browsers map
  // them.
  static constexpr std::u32string_view kWindows =
      U"€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008DŽ\u008F\u0090‘’“”•–—˜™š›œ\u009DžŸ";
  const bool hex = html.size() > 2 && (html[2] == 'x' || html[2] == 'X');
  const char* const digits = html.data() + (hex ? 3 : 2);
  uint32_t code = 0;
  const auto [end, error] = std::from_chars(digits, html.data() + html.size(), code, hex ? 16 : 10);
  const auto length = static_cast<size_t>(end - html.data());
  if (end == digits || length >= html.size() || html[length] != ';') return {};
  if (code >= 0x80 && code <= 0x9F) code = kWindows[code - 0x80];
  CharacterReference found{length + 1};
  const bool scalar = code > 0 && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
  if (error == std::errc() && scalar) append_utf8(found.text, static_cast<char32_t>(code));
  return found;
}

}  // namespace

CharacterReference reference_at(std::string_view html) {
  constexpr size_t kLongestName = 32;
  if (html.size() > 2 && html[1] == '#') return numeric(html.substr(0, kLongestName));
  size_t end = 1;
  const size_t most = std::min(html.size(), kLongestName + 2);
  while (end < most && (end > 1 ? is_ascii_alnum(html[end]) : is_ascii_letter(html[end]))) ++end;
  const char next = end < html.size() ? html[end] : ' ';
  if (end == 1 || end == kLongestName + 2 || next == '=') return {};
  const std::string_view name = html.substr(1, end - 1);
  const auto found = std::ranges::lower_bound(names(), name, {}, &Names::value_type::first);
  const bool known = found != names().end() && found->first == name;
  if (next == ';') return {end + 1, known ? std::string(found->second) : ""};
  if (known && needs_no_semicolon(name, found->second)) return {end, std::string(found->second)};
  return {};
}

std::string without_entities(std::string_view html) {
  std::string text;
  for (size_t at = 0; at < html.size();) {
    const size_t next = std::min(html.find('&', at), html.size());
    text += html.substr(at, next - at);
    at = next;
    if (at == html.size()) break;
    const CharacterReference found = reference_at(html.substr(at));
    const size_t length = std::max<size_t>(found.length, 1);
    text += found.text.empty() ? html.substr(at, length) : std::string_view(found.text);
    at += length;
  }
  return text;
}

std::string with_entities(std::string_view text, AmpersandMode which) {
  std::string html;
  for (const char c : text) {
    if (c == '&' && which == AmpersandMode::escaped)
      html += "&amp;";
    else if (c == '<')
      html += "&lt;";
    else if (c == '>')
      html += "&gt;";
    else
      html += c;
  }
  return html;
}

}  // namespace fovea
