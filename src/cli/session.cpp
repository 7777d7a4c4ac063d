#include "cli/session.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/edit_distance.h"
#include "base/log.h"
#include "cli/options.h"
#include "text/language.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDefaultModel = "models/en-de";
constexpr const char* kGallery = "gallery";  // beside it

struct SessionOptions {
  int threads = 0;
  bool quiet = false;
  std::string log_format = "auto";
};

LogFormat format_of(const std::string& name) {
  if (name == "tty") return LogFormat::tty;
  if (name == "plain") return LogFormat::plain;
  if (name == "json") return LogFormat::json;
  return LogFormat::automatic;
}

std::string model_help(Takes takes, DefaultModel chosen) {
  if (takes == Takes::one_that_labels)
    return "Directory of a model that labels texts, made by 'fovea train'; required";
  std::string help = "Model directory, or the name of a bundled model; default: ";
  help += chosen == DefaultModel::by_text ? "by the language of the text" : "en-de";
  return help + (takes == Takes::one ? "" : "; repeat for an ensemble");
}

// Two directions of a pair may share their vocabulary, and give nonsense together. Names that only
// look like languages ("run-one") are none of our business.
void check_directions(const std::vector<Package>& packages) {
  const auto first = languages_of_model(packages.front().directory);
  for (const Package& other : packages) {
    const auto languages = languages_of_model(other.directory);
    if (!first || !languages) continue;
    const bool opposite = first->first != first->second && first->first == languages->second &&
                          first->second == languages->first;
    check(!opposite, Exit::model, other.directory, ": translates in the opposite direction of ",
          packages.front().directory, ", by their names; the models of an ensemble must have one ",
          "direction");
  }
}

// The folders with a model in a folder, in alphabetical order.
std::vector<std::string> models_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (fs::exists(entry.path() / kConfigFile, error)) found.push_back(entry.path().string());
  std::ranges::sort(found);
  return found;
}

// Short names are near each other: "toy" is not meant to be "dot".
constexpr size_t kTooManyEdits = 2;

std::string names_of(const std::vector<std::string>& directories) {
  std::string names;
  for (const std::string& directory : directories)
    names += (names.empty() ? "" : ", ") + fs::path(directory).filename().string();
  return names;
}

// "; the bundled models are de-en, en-de; of the gallery: additive, dot"
std::string bundled_models() {
  const std::string models = names_of(find_models()), gallery = names_of(find_gallery());
  if (models.empty()) return "";
  return "; the bundled models are " + models +
         (gallery.empty() ? "" : "; those of the gallery: " + gallery);
}

[[noreturn]] void fail_no_model(const std::string& name) {
  std::vector<std::string> names;
  for (const std::vector<std::string>& some : {find_models(), find_gallery()})
    for (const std::string& model : some) names.push_back(fs::path(model).filename().string());
  const std::string last = (fs::path(name) / "").parent_path().filename().string();
  const bool path = name.find('/') != std::string::npos;
  const std::string meant = path ? "" : nearest_name(name, names, kTooManyEdits);
  const std::string advice =
      !meant.empty() ? "did you mean '" + meant + "'?"
      : std::ranges::count(names, last) > 0
          ? "there is a bundled model of this name: use '" + last + "' from any folder"
          : "check the path, or make a model with 'fovea train'";
  fail(Exit::model, name, ": there is no such model directory; ", advice, bundled_models());
}

// What made a directory with models of another program; "" where nothing is recognised.
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

void check_is_ours(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error) || fs::exists(fs::path(directory) / kConfigFile, error))
    return;
  const std::string program = other_program(directory);
  check(program.empty(), Exit::model, directory, ": this is a ", program, " model, which Fovea ",
        "cannot read; name a directory made by 'fovea train'", bundled_models());
}

}  // namespace

void add_session(Program& program) {
  auto options = std::make_shared<SessionOptions>();
  program.option("--threads", options->threads, "Number of threads; 0: one per core")
      .within(0, 1024)
      .from_environment("FOVEA_THREADS");
  program.flag("-q,--quiet", options->quiet, "Print only warnings and errors, no progress");
  program
      .option("--log-format", options->log_format,
              "Format of messages on stderr: auto, tty, plain, json")
      .among({"auto", "tty", "plain", "json"})
      .from_environment("FOVEA_LOG_FORMAT");
  program.prepare([options] {
    if (options->threads > 0) omp_set_num_threads(options->threads);
    start_log({.format = format_of(options->log_format), .quiet = options->quiet});
  });
}

Precision precision_named(const std::string& name) {
  if (name == "bf16") return Precision::bf16;
  return name == "int8" ? Precision::int8 : Precision::f32;
}

bool gains_from_bf16(Device device) {
  const PrecisionScope scope(Precision::bf16);
  return as_operand(Tensor::zeros({1, 1}, Type::f32, device)).type() == Type::bf16;
}

void add_device_option(Command& command, std::string& device) {
  command.option("--device", device, "Device to compute on")
      .among({"cpu", "cuda"})
      .synonyms({{"gpu", "cuda"}, {"cuda:0", "cuda"}})
      .any_case()
      .with_default()
      .from_environment("FOVEA_DEVICE");
}

void add_precision_option(Command& command, std::string& precision) {
  command.option("--precision", precision, "Arithmetic precision of matrix products")
      .among({"f32", "bf16", "int8"})
      .with_default()
      .from_environment("FOVEA_PRECISION");
}

void add_model_options(Command& command, ModelChoice& choice, Takes takes, DefaultModel chosen) {
  command.option("-m,--model", choice.directories, model_help(takes, chosen).c_str())
      .takes("DIR")
      .one_by_one()
      .from_environment("FOVEA_MODEL");
  if (takes != Takes::one_that_labels) {
    command.option("--from", choice.languages.from, "Language of the text, for a bundled model")
        .takes("CODE");
    command.option("--to", choice.languages.to, "Language to translate to, for a bundled model")
        .takes("CODE");
  }
  add_device_option(command, choice.device);
  add_precision_option(command, choice.precision);
}

Device device_of(const ModelChoice& choice) {
  const Device device = device_named(choice.device);
  check(choice.numbers() != Precision::int8 || device == Device{Cpu{}}, Exit::usage,
        "--precision int8 is for --device cpu; use --precision bf16 with --device ", choice.device);
  return device;
}

std::vector<Package> load_models(const ModelChoice& choice,
                                 const std::function<std::string()>& sample) {
  const Device device = device_of(choice);
  check(choice.directories.empty() || choice.languages.empty(), Exit::usage,
        "--from and --to choose a bundled model, and -m (or $FOVEA_MODEL) names one; give one of ",
        "them");
  std::vector<std::string> directories = choice.directories;
  if (directories.empty()) {
    const bool detects = sample && choice.languages.from.empty();
    directories.push_back(bundled_model_for(choice.languages, detects ? sample() : ""));
  }
  std::vector<Package> packages;
  for (std::string directory : directories) {
    directory = model_directory(directory);
    packages.push_back(load_package(directory, device));
    check(packages.back().config.type != "reader", Exit::model, directory,
          ": this model labels texts and does not translate; use 'fovea classify -m ", directory,
          "'");
    packages.back().model->settle();
  }
  check_directions(packages);
  check_ensemble(packages);
  return packages;
}

std::vector<const Model*> models_of(const std::vector<Package>& packages) {
  std::vector<const Model*> models;
  for (const Package& package : packages) models.push_back(package.model.get());
  return models;
}

std::string model_directory(const std::string& name) {
  check(!name.empty(), Exit::usage, "the name given for a model (-m) is empty; name a model ",
        "directory, or omit -m");
  const std::string found = model_or_file(name);
  std::error_code error;
  if (!fs::exists(found, error)) fail_no_model(name);
  check_is_ours(found);
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
    const auto told = load_config(directory).languages;
    if (!told.empty()) return std::pair(canonical_code(told[0]), canonical_code(told[1]));
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
