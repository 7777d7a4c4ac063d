#include "importer/language_pieces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace fovea {
namespace {

std::string all_codes(const LanguagePieces& languages) {
  std::vector<std::string> codes;
  for (const auto& [code, piece] : languages) codes.push_back(printable(code));
  return fmt::format("{}", fmt::join(codes, ", "));
}

}  // namespace

LanguagePieces languages_between(const std::vector<std::string>& names, const std::string& before,
                                 const std::string& after) {
  LanguagePieces languages;
  const size_t both = before.size() + after.size();
  for (const std::string& name : names)
    if (name.size() > both && name.starts_with(before) && name.ends_with(after))
      languages[name.substr(before.size(), name.size() - both)] = name;
  return languages;
}

ChosenLanguage choose_language(const LanguagePieces& languages, const std::string& code,
                               const std::string& field, const std::string& model) {
  check(!code.empty(), ExitCode::usage, model, ": this model has several languages; give `", field,
        "` with one of: ", all_codes(languages));
  if (const auto exact = languages.find(code); exact != languages.end())
    return {exact->first, exact->second};
  std::vector<ChosenLanguage> found;
  for (const auto& [name, piece] : languages)
    if (name.starts_with(code + "_")) found.push_back({name, piece});
  check(found.size() == 1, ExitCode::usage, model, ": the model has ",
        found.empty() ? "no language '" : "several languages '", printable(code), "' for `", field,
        "`, expected one of: ", all_codes(languages));
  return found.front();
}

std::vector<std::string> language_pair(const std::string& from, const std::string& to) {
  std::vector<std::string> pair{from, to};
  for (std::string& code : pair) {
    std::ranges::replace(code, '_', '-');
    const bool letters = std::ranges::all_of(
        code, [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; });
    if (code.size() < 2 || code.size() > 12 || !letters) return {};
  }
  return pair;
}

}  // namespace fovea
