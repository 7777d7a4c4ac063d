#include "models/model_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <map>

#include "base/crc32c.h"
#include "models/stored_weights.h"

namespace fovea {
namespace {

constexpr int64_t kSpecialWords = 4;  // <pad>, <s>, </s>, <unk>

std::string in(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

bool has_text(const std::string& path, const std::string& text) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  return read_file(path) == text;
}

void check_directory(const std::string& directory) {
  std::error_code error;
  const bool exists = std::filesystem::exists(directory, error);
  check(exists, ExitCode::model, directory,
        ": there is no such model directory; check the path, or ",
        "train a model with 'fovea train'");
  check(std::filesystem::is_directory(directory, error), ExitCode::model, directory,
        ": this is a file, expected a directory with ", kWeightsFile, " and ", kConfigFile);
}

void check_file(const std::string& path, const char* what) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  check(!error, ExitCode::model, path, ": cannot be read: ", error.message());
  const auto checkpoints = std::filesystem::path(path).parent_path() / "checkpoints";
  check(exists || !std::filesystem::exists(checkpoints, error), ExitCode::model, path,
        ": missing, but there are checkpoints: training has not chosen a model yet; resume it ",
        "with the same 'fovea train' command");
  check(exists, ExitCode::model, path, ": missing; a model directory has ", what, " in this file");
}

}  // namespace

void save_config(const std::string& directory, const ModelConfig& config) {
  ModelConfig copy = config;
  Settings settings;
  settings.group("model", copy, "the network that model.safetensors holds the weights of");
  write_if_changed(in(directory, kConfigFile), settings.dump());
}

void save_model(const std::string& directory, const ModelConfig& config,
                const ParameterStore& parameters, StoredType stored) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  check(!error, ExitCode::files, directory, ": cannot be created: ", error.message());

  save_config(directory, config);
  save_parameters(in(directory, kWeightsFile), parameters, stored);
}

void write_if_changed(const std::string& path, const std::string& text) {
  if (!has_text(path, text)) write_atomically(path, text);
}

ModelConfig load_config(const std::string& directory) {
  check_directory(directory);
  const std::string path = in(directory, kConfigFile);
  check_file(path, "the shape of the network");
  ModelConfig config;
  Settings settings;
  settings.group("model", config);
  settings.foreign("adapter",
                   "this directory holds an adapter, a model is expected; give the "
                   "model that it was trained for, and the directory as `adapter`");
  settings.read_file(path, ExitCode::model);
  const auto words = [&](const char* key, int64_t found) {
    check(found >= kSpecialWords, ExitCode::model, path, ": ", key, ": ", found,
          " words are too few for the four special words (ids 0 to 3); expected the size of the ",
          "vocabulary");
  };
  words("model.source_words", config.source_words);
  words("model.target_words", config.target_words);
  try {
    config.check(ExitCode::model);
  } catch (const Error& error) {
    fail(ExitCode::model, path, ": ", error.what());
  }
  return config;
}

uint32_t fingerprint_of(const SafetensorsFile& file) {
  std::map<std::string, const TensorInfo*> sorted;
  for (const TensorInfo& t : file.tensors()) sorted[t.name] = &t;
  uint32_t sum = 0;
  for (const auto& [name, t] : sorted) {
    const std::string header =
        fmt::format("{} {} {}\n", name, stored_name(t->dtype), fmt::join(t->shape, " "));
    sum = crc32c(file.data(*t), crc32c(as_byte_span(header), sum));
  }
  return sum;
}

std::string weights_file(const std::string& directory) {
  const std::string path = in(directory, kWeightsFile);
  check_file(path, "the weights");
  return path;
}

LoadedModel load_model(const std::string& directory, ElementType type, Device device) {
  LoadedModel loaded{load_config(directory), nullptr};
  const SafetensorsFile file = SafetensorsFile::open(weights_file(directory));
  loaded.model = declare_model(loaded.config, type, device);
  check_parameters(file, loaded.model->parameters());
  loaded.model->parameters().place();
  load_parameters(file, loaded.model->parameters());
  return loaded;
}

}  // namespace fovea
