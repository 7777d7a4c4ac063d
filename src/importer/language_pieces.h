#pragma once

#include <map>
#include <string>
#include <vector>

namespace fovea {

// The language codes of a multilingual model and the piece of each: "en" and "__en__".
using LanguagePieces = std::map<std::string, std::string>;

// The pieces among `names` that begin and end with the given texts; the code is what is between.
LanguagePieces languages_between(const std::vector<std::string>& names, const std::string& before,
                                 const std::string& after);

// A language of the model that the user chose.
struct ChosenLanguage {
  std::string code, piece;
};

// The language of a code. A code may omit the part from "_" on if only one language of the model
// begins with it: "zh" for "zh_CN". ExitCode::usage with all codes if there is no such language, or
// if `code` is empty. `field` is `from` or `to`; `model` is the model's directory.
ChosenLanguage choose_language(const LanguagePieces& languages, const std::string& code,
                               const std::string& field, const std::string& model);

// The codes for model.languages: letters and hyphens. Empty if one of them is not known.
std::vector<std::string> language_pair(const std::string& from, const std::string& to);

}  // namespace fovea
