#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The directory of a bundled model, and the languages in its config.yml.
struct BundledModel {
  std::string directory, source, target;
};

// The values of the options --from and --to. "" means any language.
struct LanguageChoice {
  std::string from = {}, to = {};

  bool empty() const { return from.empty() && to.empty(); }
};

// Returns the first model that translates in the chosen direction. If there is none, returns null.
// If --from is not given, models that read the language of `text` are tried first.
const BundledModel* choose_model(std::span<const BundledModel> models, const LanguageChoice& choice,
                                 std::string_view text);

// Returns the directory of the bundled model for the choice and the text. If there is none, throws
// ExitCode::model. If the language of the text selects another model than the default model, logs
// it.
std::string bundled_model_for(const LanguageChoice& choice, std::string_view text);

}  // namespace fovea
