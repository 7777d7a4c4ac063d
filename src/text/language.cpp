#include "text/language.h"

#include <algorithm>
#include <vector>

#include "base/ascii.h"

namespace fovea {
namespace {

constexpr std::pair<std::string_view, const char*> kNames[] = {
    {"af", "Afrikaans"},
    {"am", "Amharic"},
    {"ar", "Arabic"},
    {"as", "Assamese"},
    {"az", "Azerbaijani"},
    {"be", "Belarusian"},
    {"bg", "Bulgarian"},
    {"bn", "Bengali"},
    {"br", "Breton"},
    {"ca", "Catalan"},
    {"cs", "Czech"},
    {"cy", "Welsh"},
    {"da", "Danish"},
    {"de", "German"},
    {"el", "Greek"},
    {"en", "English"},
    {"eo", "Esperanto"},
    {"es", "Spanish"},
    {"et", "Estonian"},
    {"eu", "Basque"},
    {"fa", "Persian"},
    {"fi", "Finnish"},
    {"fr", "French"},
    {"ga", "Irish"},
    {"gl", "Galician"},
    {"gu", "Gujarati"},
    {"he", "Hebrew"},
    {"hi", "Hindi"},
    {"hr", "Croatian"},
    {"hu", "Hungarian"},
    {"hy", "Armenian"},
    {"id", "Indonesian"},
    {"is", "Icelandic"},
    {"it", "Italian"},
    {"ja", "Japanese"},
    {"ka", "Georgian"},
    {"kk", "Kazakh"},
    {"km", "Khmer"},
    {"kn", "Kannada"},
    {"ko", "Korean"},
    {"la", "Latin"},
    {"lo", "Lao"},
    {"lt", "Lithuanian"},
    {"lv", "Latvian"},
    {"mk", "Macedonian"},
    {"ml", "Malayalam"},
    {"mn", "Mongolian"},
    {"mr", "Marathi"},
    {"ms", "Malay"},
    {"my", "Burmese"},
    {"nb", "Norwegian"},
    {"ne", "Nepali"},
    {"nl", "Dutch"},
    {"or", "Odia"},
    {"pa", "Punjabi"},
    {"pl", "Polish"},
    {"pt", "Portuguese"},
    {"ro", "Romanian"},
    {"ru", "Russian"},
    {"si", "Sinhala"},
    {"sk", "Slovak"},
    {"sl", "Slovenian"},
    {"sq", "Albanian"},
    {"sr", "Serbian"},
    {"sv", "Swedish"},
    {"sw", "Swahili"},
    {"ta", "Tamil"},
    {"te", "Telugu"},
    {"tg", "Tajik"},
    {"th", "Thai"},
    {"tl", "Tagalog"},
    {"tr", "Turkish"},
    {"ug", "Uyghur"},
    {"uk", "Ukrainian"},
    {"ur", "Urdu"},
    {"uz", "Uzbek"},
    {"vi", "Vietnamese"},
    {"zu", "Zulu"},
    {"pt-BR", "Portuguese (Brazil)"},
    {"zh-Hans", "Chinese"},
    {"zh-Hant", "Chinese (traditional)"},
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
  return std::string(code);
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
