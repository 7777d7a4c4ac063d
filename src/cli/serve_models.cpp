#include "cli/serve_models.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>

#include "base/check.h"
#include "cli/training_run.h"
#include "text/language.h"

namespace fovea {
namespace {

// The default model and the bundled models of other language pairs beside it.
std::vector<EngineSpec> default_models() {
  namespace fs = std::filesystem;
  const std::string first = find_default_model();
  check(!first.empty(), Exit::model,
        "there is no bundled model; name one with -m DIR, or train one: fovea train --help");
  std::set<std::string> others;  // sorted
  std::error_code none;          // a folder that cannot be read has no others
  for (const auto& entry : fs::directory_iterator(fs::path(first).parent_path(), none))
    if (languages_of_folder(entry.path().string()) && fs::exists(entry.path() / kConfigFile))
      others.insert(entry.path().string());
  others.erase(first);
  std::vector<EngineSpec> models{parse_engine(first)};
  for (const std::string& directory : others) models.push_back(parse_engine(directory));
  return models;
}

// "en-de=DIR", "DIR", or either with the name of a bundled model.
EngineSpec spec_of(const std::string& text) {
  if (text.find('=') != std::string::npos) {
    EngineSpec spec = parse_engine(text);
    spec.directory = model_directory(spec.directory);
    return spec;
  }
  const std::string found = model_directory(text);
  const auto pair = languages_of_model(found);
  if (pair) return {found, pair->first, pair->second};
  load_config(found);  // that there is no model in it comes before its languages
  return parse_engine(found);
}

// The second of two would never be asked.
void check_different(const std::vector<EngineSpec>& specs,
                     const std::vector<std::filesystem::path>& places) {
  for (size_t i = 0; i < specs.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      check(places[i] != places[j] || specs[i].source != specs[j].source ||
                specs[i].target != specs[j].target,
            Exit::usage, specs[i].directory, ": this model is given twice for ", specs[i].source,
            " to ", specs[i].target, "; give it once");
}

// What each model is called by: the name of its folder, behind as many of the folders around it as
// it takes to tell it from the others.
std::vector<std::string> names_of(const std::vector<EngineSpec>& specs) {
  namespace fs = std::filesystem;
  std::vector<fs::path> places, names;
  for (const EngineSpec& spec : specs) {
    const fs::path place = fs::absolute(spec.directory).lexically_normal();
    places.push_back(place.has_filename() ? place : place.parent_path());
    names.push_back(places.back().filename());
  }
  check_different(specs, places);
  const auto ambiguous = [&](size_t i) {
    for (size_t j = 0; j < places.size(); ++j)
      if (places[j] != places[i] && names[j] == names[i]) return true;
    return false;
  };
  for (bool any = true; any;) {
    std::vector<size_t> alike;
    for (size_t i = 0; i < names.size(); ++i)
      if (ambiguous(i)) alike.push_back(i);
    any = !alike.empty();
    for (const size_t i : alike) {
      const auto deep = std::distance(names[i].begin(), names[i].end()) + 1;
      fs::path longer;
      for (auto at = std::prev(places[i].end(), deep); at != places[i].end(); ++at) longer /= *at;
      names[i] = longer;
    }
  }
  return {names.begin(), names.end()};
}

Package load_engine(const std::string& directory, Device device) {
  Package package = load_package(directory, device);
  check(package.config.type != "reader", Exit::model, directory,
        ": this model labels texts, a translation model is expected");
  package.model->settle();
  return package;
}

}  // namespace

Engines load_engines(const std::vector<std::string>& models, const std::vector<std::string>& runs,
                     const ModelChoice& choice) {
  const Device device = device_of(choice);
  Engines engines;
  const bool none = models.empty() && runs.empty();
  std::vector<EngineSpec> specs = none ? default_models() : std::vector<EngineSpec>();
  std::ranges::transform(models, std::back_inserter(specs), spec_of);
  const size_t first_run = specs.size(), first_of_gallery = first_run + runs.size();
  std::ranges::transform(runs, std::back_inserter(specs), spec_of);
  if (none) std::ranges::transform(find_gallery(), std::back_inserter(specs), spec_of);
  const std::vector<std::string> names = names_of(specs);
  for (size_t i = 0; i < specs.size(); ++i) {
    const auto& [directory, source, target] = specs[i];
    if (i < first_of_gallery)
      engines.push_back(
          std::make_shared<Engine>(names[i], source, target, load_engine(directory, device),
                                   i < first_run ? nullptr : training_run(specs[i], device)));
    else
      engines.push_back(std::make_shared<Engine>(
          EngineName{names[i], source, target, true}, load_config(directory),
          [directory = directory, device] { return load_engine(directory, device); }));
  }
  return engines;
}

}  // namespace fovea
