#include "serve/load_models.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>

#include "base/check.h"
#include "decode/model_lookup.h"
#include "models/decodable.h"
#include "text/language.h"

namespace fovea {
namespace {

// Returns the bundled models that translate, the default model first.
std::vector<ModelSpec> default_models() {
  const std::string first = find_default_model();
  check(!first.empty(), ExitCode::model,
        "there is no bundled model; name one with `model`, or train one: fovea help train");
  std::vector<ModelSpec> models{parse_model_spec(first)};
  for (const std::string& directory : find_models())
    if (directory != first && languages_of_folder(directory))
      models.push_back(parse_model_spec(directory));
  return models;
}

// Parses "en-de=DIR" or "DIR". DIR may be the name of a bundled model.
ModelSpec spec_of(const std::string& text) {
  if (text.find('=') != std::string::npos) {
    ModelSpec spec = parse_model_spec(text);
    spec.directory = model_directory(spec.directory);
    return spec;
  }
  const std::string found = model_directory(text);
  const auto pair = languages_of_model(found);
  if (pair) return {found, pair->first, pair->second};
  load_config(found);  // throws before missing languages are reported
  return parse_model_spec(found);
}

// Two equal specifications are an error: requests would never reach the second one.
void check_different(const std::vector<ModelSpec>& specs,
                     const std::vector<std::filesystem::path>& paths) {
  for (size_t i = 0; i < specs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      check(paths[i] != paths[j] || specs[i].source != specs[j].source ||
                specs[i].target != specs[j].target,
            ExitCode::usage, specs[i].directory, ": this model is given twice for ",
            specs[i].source, " to ", specs[i].target, "; give it once");
}

// Returns the name of each model: the name of its folder, preceded by the parent folders that are
// needed to make it unique.
std::vector<std::string> names_of(const std::vector<ModelSpec>& specs) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths, names;
  for (const ModelSpec& spec : specs) {
    const fs::path path = fs::absolute(spec.directory).lexically_normal();
    paths.push_back(path.has_filename() ? path : path.parent_path());
    names.push_back(paths.back().filename());
  }
  check_different(specs, paths);
  const auto ambiguous = [&](size_t i) {
    for (size_t j = 0; j < paths.size(); ++j)
      if (paths[j] != paths[i] && names[j] == names[i]) return true;
    return false;
  };
  for (bool any = true; any;) {
    std::vector<size_t> duplicates;
    for (size_t i = 0; i < names.size(); ++i)
      if (ambiguous(i)) duplicates.push_back(i);
    any = !duplicates.empty();
    for (const size_t i : duplicates) {
      const auto depth = std::distance(names[i].begin(), names[i].end()) + 1;
      fs::path longer;
      for (auto at = std::prev(paths[i].end(), depth); at != paths[i].end(); ++at) longer /= *at;
      names[i] = longer;
    }
  }
  return {names.begin(), names.end()};
}

ModelBundle load_bundle(const std::string& directory, Device device,
                        const std::string& adapter = "") {
  ModelBundle package = load_package(directory, device, adapter);
  check(package.model->as<Decodable>(), ExitCode::model, directory,
        ": this model labels texts, a translation model is expected");
  package.model->freeze_for_inference();
  return package;
}

}  // namespace

ServedModels load_served_models(const ServedDirectories& directories, Device device) {
  const auto& [models, runs, adapter] = directories;
  check(adapter.empty() || (models.size() == 1 && runs.empty()), ExitCode::usage,
        "`adapter` belongs to one model; give exactly one `model`, or merge the adapter with ",
        "'fovea average'");
  ServedModels served;
  const bool none = models.empty() && runs.empty();
  std::vector<ModelSpec> specs = none ? default_models() : std::vector<ModelSpec>();
  std::ranges::transform(models, std::back_inserter(specs), spec_of);
  const size_t first_run = specs.size(), first_of_gallery = first_run + runs.size();
  std::ranges::transform(runs, std::back_inserter(specs), spec_of);
  if (none) std::ranges::transform(find_gallery(), std::back_inserter(specs), spec_of);
  const std::vector<std::string> names = names_of(specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto& [directory, source, target] = specs[i];
    if (i < first_of_gallery)
      served.push_back(std::make_shared<ServedModel>(
          names[i], source, target, load_bundle(directory, device, directories.adapter),
          i < first_run ? nullptr : training_run(specs[i], device)));
    else
      served.push_back(std::make_shared<ServedModel>(
          ModelName{names[i], source, target, true}, load_config(directory),
          [directory = directory, device] { return load_bundle(directory, device); }));
  }
  return served;
}

}  // namespace fovea
