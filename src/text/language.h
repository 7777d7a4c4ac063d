#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace fovea {

// The English name of a language; the code itself where it is not in our table.
std::string language_name(std::string_view code);

// A code as LibreTranslate and DeepL write it, as a model is called: "PT-BR" and "pb" are pt-BR,
// "EN" is en. Case does not matter; unknown codes come back in lower case.
std::string canonical_code(std::string_view code);

// Whether two codes name one language, whatever its region or script: zh-Hans and zh-Hant.
bool same_language(std::string_view a, std::string_view b);

// "en-de" from "en-de", "some/where/en-de" or "en-de-small/"; nothing where the name of the folder
// does not begin with two codes of two or three letters.
std::optional<std::pair<std::string, std::string>> languages_of_folder(std::string_view path);

}  // namespace fovea
