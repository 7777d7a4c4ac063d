#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fovea {

// Returns the English name of a language, or the code itself if the code is unknown.
std::string language_name(std::string_view code);

// Converts a code of LibreTranslate or DeepL to the code of models: "PT-BR" and "pb" become pt-BR,
// "EN" becomes en. Case does not matter; unknown codes become lower case.
std::string canonical_code(std::string_view code);

// Returns whether two codes have the same language, such as zh-Hans and zh-Hant. Ignores region and
// script.
bool same_language(std::string_view a, std::string_view b);

// Finds the languages in the name of a folder: en and de in "en-de", "path/en-de" or
// "en-de-small/". The result is empty if the name does not begin with two codes of two or three
// letters.
std::optional<std::pair<std::string, std::string>> languages_of_folder(std::string_view path);

}  // namespace fovea
