#include "decode/model_selection.h"

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "base/log.h"
#include "decode/model_lookup.h"
#include "text/language.h"
#include "text/readability.h"

namespace fovea {
namespace {

// Returns the bundled models, the default model first. If it cannot read a model, skips it with a
// warning.
std::vector<BundledModel> bundled_models() {
  const std::string first = find_default_model();
  std::vector<BundledModel> models;
  for (const std::string& directory : find_models()) try {
      if (const auto languages = languages_of_model(directory))
        models.push_back({directory, languages->first, languages->second});
    } catch (const Error& error) {
      log_warning("ignoring a bundled model: {}", error.what());
    }
  std::stable_partition(models.begin(), models.end(),
                        [&](const BundledModel& m) { return m.directory == first; });
  return models;
}

std::string name_of(const BundledModel& model) {
  return std::filesystem::path(model.directory).filename().string();
}

[[noreturn]] void fail_no_direction(const LanguageChoice& choice,
                                    std::span<const BundledModel> models) {
  std::string names;
  for (const BundledModel& model : models) names += (names.empty() ? "" : ", ") + name_of(model);
  fail(ExitCode::model, "no bundled model translates",
       choice.from.empty() ? "" : " from '" + choice.from + "'",
       choice.to.empty() ? "" : " to '" + choice.to + "'", "; there are ", names,
       "; give another model with `model`");
}

}  // namespace

const BundledModel* choose_model(std::span<const BundledModel> models, const LanguageChoice& choice,
                                 std::string_view text) {
  const std::string language =
      choice.from.empty() ? language_despite_names(text).language : canonical_code(choice.from);
  const auto translates_to = [&](const BundledModel& model) {
    return choice.to.empty() || same_language(canonical_code(choice.to), model.target);
  };
  const BundledModel* first = nullptr;
  for (const BundledModel& model : models) {
    if (!translates_to(model)) continue;
    if (same_language(language, model.source)) return &model;
    if (!first) first = &model;
  }
  return choice.from.empty() ? first : nullptr;
}

std::string bundled_model_for(const LanguageChoice& choice, std::string_view text) {
  const std::vector<BundledModel> models = bundled_models();
  check(!models.empty(), ExitCode::model, "there is no bundled model (looked for models/en-de in ",
        "$FOVEA_HOME and above the program); give a model with `model`, or train one: ",
        "fovea help train");
  const BundledModel* const chosen = choose_model(models, choice, text);
  if (!chosen) fail_no_direction(choice, models);
  if (chosen != choose_model(models, choice, ""))
    log_info("model {}: the text looks like {}; `from`, `to` or `model` choose another",
             name_of(*chosen), language_name(chosen->source));
  return chosen->directory;
}

}  // namespace fovea
