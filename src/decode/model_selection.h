#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The directory of a bundled model and the languages of its config.yml.
struct BundledModel {
  std::string directory, source, target;
};

// The languages of the options --from and --to; "" means any language.
struct LanguageChoice {
  std::string from = {}, to = {};

  bool empty() const { return from.empty() && to.empty(); }
};

// Returns the first model that translates in the chosen direction, or null. Without --from, models
// that read the language of `text` come first.
const BundledModel* choose_model(std::span<const BundledModel> models, const LanguageChoice& choice,
                                 std::string_view text);

// Returns the directory of the bundled model for the choice and the text. Throws ExitCode::model if
// there is none. Logs the model if it is not the default model because of the language of the text.
std::string bundled_model_for(const LanguageChoice& choice, std::string_view text);

}  // namespace fovea
