#include "decode/model_lookup.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "base/edit_distance.h"
#include "models/model_directory.h"
#include "text/language.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultModel = "models/en-de";
constexpr const char* kGallery = "gallery";  // a folder of models, beside the default model

// Returns the model directories in a folder, sorted by name.
std::vector<std::string> models_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / kConfigFile, error)) found.push_back(entry.path().string());
  std::ranges::sort(found);
  return found;
}

// If a name needs this number of edits or more, it is not proposed. Names of models are short, so
// two edits can turn a name into an unrelated name, such as "toy" into "dot".
constexpr size_t kTooManyEdits = 2;

std::string names_of(const std::vector<std::string>& directories) {
  std::string names;
  for (const std::string& directory : directories)
    names += (names.empty() ? "" : ", ") + fs::path(directory).filename().string();
  return names;
}

// Returns a text such as "; the bundled models are de-en, en-de; those of the gallery: additive,
// dot".
std::string bundled_models() {
  const std::string models = names_of(find_models()), gallery = names_of(find_gallery());
  if (models.empty()) return "";
  return "; the bundled models are " + models +
         (gallery.empty() ? "" : "; those of the gallery: " + gallery);
}

[[noreturn]] void fail_no_model(const std::string& name) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& models : {find_models(), find_gallery()})
    for (const std::string& model : models) names.push_back(fs::path(model).filename().string());
  const std::string last = (fs::path(name) / "").parent_path().filename().string();
  const bool path = name.find('/') != std::string::npos;
  const std::string similar = path ? "" : nearest_name(name, names, kTooManyEdits);
  const std::string advice =
      !similar.empty() ? "did you mean '" + similar + "'?"
      : std::ranges::count(names, last) > 0
          ? "there is a bundled model of this name: use '" + last + "' from any folder"
          : "check the path, or make a model with 'fovea train'";
  fail(ExitCode::model, name, ": there is no such model directory; ", advice, bundled_models());
}

// Returns the name of the other toolkit that made this model directory. If it recognises none,
// returns "".
std::string other_program(const fs::path& directory) {
  std::error_code error;
  const auto has = [&](const char* file) { return fs::exists(directory / file, error); };
  if (has("model.bin")) return "CTranslate2";
  if (has("decoder.yml")) return "Marian";
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const std::string file = entry.path().filename().string();
    if (file.ends_with(".npz") || file.ends_with(".npz.decoder.yml")) return "Marian";
    if (file.starts_with("dict.") && file.ends_with(".txt")) return "fairseq";
  }
  return has("config.json") ? "Hugging Face" : "";
}

void check_program(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error) || fs::exists(fs::path(directory) / kConfigFile, error))
    return;
  const std::string program = other_program(directory);
  check(program.empty(), ExitCode::model, directory, ": this is a ", program,
        " model, which Fovea ", "cannot read; name a directory made by 'fovea train'",
        bundled_models());
}

}  // namespace

std::string model_directory(const std::string& name) {
  check(!name.empty(), ExitCode::usage,
        "`model`: the model name is empty; give a model directory, or ", "omit `model`");
  const std::string found = model_or_file(name);
  std::error_code error;
  if (!fs::exists(found, error)) fail_no_model(name);
  check_program(found);
  return found;
}

std::string model_or_file(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error) || name.find('/') != std::string::npos) return name;
  const fs::path first = find_default_model();
  if (first.empty()) return name;
  for (const fs::path& folder : {first.parent_path(), first.parent_path() / kGallery})
    if (fs::exists(folder / name / kConfigFile, error)) return (folder / name).string();
  return name;
}

std::vector<std::string> find_models() {
  const fs::path first = find_default_model();
  return first.empty() ? std::vector<std::string>() : models_in(first.parent_path());
}

std::vector<std::string> find_gallery() {
  const fs::path first = find_default_model();
  return first.empty() ? std::vector<std::string>() : models_in(first.parent_path() / kGallery);
}

std::optional<std::pair<std::string, std::string>> languages_of_model(
    const std::string& directory) {
  std::error_code error;
  if (fs::exists(fs::path(directory) / kConfigFile, error)) {
    const auto languages = load_config(directory).languages;
    if (!languages.empty())
      return std::pair(canonical_code(languages[0]), canonical_code(languages[1]));
  }
  return languages_of_folder(directory);
}

std::string find_default_model() {
  std::error_code error;
  const auto model_in = [&](const fs::path& folder) {
    return fs::exists(folder / kDefaultModel / kConfigFile, error);
  };
  if (const char* home = std::getenv("FOVEA_HOME"); home && *home)
    return model_in(home) ? (fs::path(home) / kDefaultModel).string() : "";
  fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (; !folder.empty(); folder = folder.parent_path()) {
    if (model_in(folder)) return (folder / kDefaultModel).string();
    if (folder == folder.root_path()) break;
  }
  return "";
}

}  // namespace fovea
