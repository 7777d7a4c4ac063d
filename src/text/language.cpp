#include "text/language.h"

#include <unicode/locid.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <vector>

#include "base/ascii.h"

namespace fovea {
namespace {

// Languages whose name here differs from the name in ICU.
constexpr std::pair<std::string_view, const char*> kNames[] = {
    {"bn", "Bengali"},      {"nb", "Norwegian"},
    {"tl", "Tagalog"},      {"pt-BR", "Portuguese (Brazil)"},
    {"zh-Hans", "Chinese"}, {"zh-Hant", "Chinese (traditional)"},
};

constexpr std::pair<std::string_view, std::string_view> kAliases[] = {
    {"pb", "pt-BR"},      {"pt-br", "pt-BR"}, {"zh", "zh-Hans"},      {"zh-hans", "zh-Hans"},
    {"zh-cn", "zh-Hans"}, {"zt", "zh-Hant"},  {"zh-hant", "zh-Hant"}, {"zh-tw", "zh-Hant"},
    {"en-us", "en"},      {"en-gb", "en"},    {"pt-pt", "pt"},        {"no", "nb"},
};

bool is_code(std::string_view text) {
  return (text.size() == 2 || text.size() == 3) &&
         std::ranges::all_of(text, [](char c) { return c >= 'a' && c <= 'z'; });
}

}  // namespace

std::string language_name(std::string_view code) {
  for (const auto& [known, name] : kNames)
    if (known == code) return name;
  if (code.empty() || code == "und") return std::string(code);
  icu::UnicodeString name;
  icu::Locale(std::string(code).c_str()).getDisplayName(icu::Locale::getEnglish(), name);
  std::string utf8;
  return name.toUTF8String(utf8);
}

std::string canonical_code(std::string_view code) {
  const std::string lower = lower_ascii(code);
  for (const auto& [alias, known] : kAliases)
    if (alias == lower) return std::string(known);
  return lower;
}

bool same_language(std::string_view a, std::string_view b) {
  return a.substr(0, a.find('-')) == b.substr(0, b.find('-'));
}

std::optional<std::pair<std::string, std::string>> languages_of_folder(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const std::string_view from = name.substr(0, dash), rest = name.substr(dash + 1);
  const std::string_view to = rest.substr(0, rest.find_first_of("-._"));
  if (!is_code(from) || !is_code(to)) return std::nullopt;
  return std::pair(canonical_code(from), canonical_code(to));
}

}  // namespace fovea
