#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A model directory and the languages of its config.yml.
struct BundledModel {
  std::string directory, source, target;
};

// The options --from and --to; "" is any language.
struct LanguageChoice {
  std::string from = {}, to = {};

  bool empty() const { return from.empty() && to.empty(); }
};

// The first model that translates in the chosen direction. Without --from, one that reads the
// language of `text` comes first. Null if there is none.
const BundledModel* choose_model(std::span<const BundledModel> models, const LanguageChoice& choice,
                                 std::string_view text);

// Directory of the bundled model for the choice and the text; ExitCode::model if there is none.
// Logs the choice if the language of the text decided against the default model.
std::string bundled_model_for(const LanguageChoice& choice, std::string_view text);

}  // namespace fovea
