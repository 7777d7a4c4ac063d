#include "models/model_directory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>

#include "base/crc32c.h"
#include "base/utf8.h"
#include "ops/matmul.h"

namespace fovea {
namespace {

constexpr int64_t kSpecialWords = 4;  // <pad>, <s>, </s>, <unk>

std::string in(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

Shape shape_of(const TensorInfo& info) { return Shape(info.shape.begin(), info.shape.end()); }

std::string location(const SafetensorsFile& file, const std::string& tensor) {
  return file.path() + ": tensor '" + printable(tensor) + "': ";
}

// Checks that the file's header lists exactly the parameters of the model. Reads no weights.
void check_header(const SafetensorsFile& file, const ParameterStore& parameters) {
  for (const ParameterStore::Parameter& p : parameters.all()) {
    const TensorInfo* found = file.find(p.name);
    check(found != nullptr, ExitCode::model, location(file, p.name),
          "missing, the configuration asks for one of shape ", p.tensor.shape(),
          "; use the weights and config.yml of the same model");
    check(found->dtype == StoredType::F32 || found->dtype == StoredType::BF16, ExitCode::model,
          location(file, p.name), "type ", stored_name(found->dtype),
          ", expected F32 or BF16; convert the file");
    check(shape_of(*found) == p.tensor.shape(), ExitCode::model, location(file, p.name), "shape ",
          shape_of(*found), ", the configuration asks for ", p.tensor.shape(),
          "; use the weights and config.yml of the same model");
  }
  if (file.tensors().size() == parameters.all().size()) return;
  for (const TensorInfo& t : file.tensors())
    check(parameters.find(t.name) != nullptr, ExitCode::model, location(file, t.name),
          "the configuration has no such parameter; use the weights and config.yml of the same ",
          "model");
}

std::vector<float> floats_of(const SafetensorsFile& file, const TensorInfo& info) {
  const std::span<const std::byte> bytes = file.data(info);
  std::vector<float> values(static_cast<size_t>(info.elements()));
  if (info.dtype == StoredType::F32) {
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  std::vector<uint16_t> halves(values.size());
  std::memcpy(halves.data(), bytes.data(), bytes.size());
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<float>(uint32_t{halves[i]} << 16);
  return values;
}

// The index of the first value that is not finite; values.size() if all are finite.
size_t first_not_finite(std::span<const float> values) {
  float sum = 0;  // x − x is 0 for every finite x, otherwise NaN
  for (const float x : values) sum += x - x;
  if (sum == 0) return values.size();
  size_t i = 0;
  while (std::isfinite(values[i])) ++i;
  return i;
}

void assign(const Tensor& tensor, std::span<const float> values) {
  if (tensor.type() == ElementType::f32)
    tensor.assign_bytes(std::as_bytes(values));
  else
    tensor.assign(std::vector<double>(values.begin(), values.end()));
}

std::vector<std::byte> stored_bytes(const ParameterStore::Parameter& p, StoredType stored) {
  const std::vector<double> values = p.tensor.values();
  std::vector<float> floats(values.size());
  for (size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  const size_t bad = first_not_finite(floats);
  check(bad == floats.size(), ExitCode::diverged, "parameter '", p.name, "': element ", bad,
        " is not finite; the model was not saved");
  const size_t width = stored == StoredType::BF16 ? 2 : 4;
  std::vector<std::byte> bytes(floats.size() * width);
  if (stored == StoredType::BF16) {
    std::vector<uint16_t> halves(floats.size());
    for (size_t i = 0; i < floats.size(); ++i) halves[i] = to_bf16(floats[i]).bits;
    std::memcpy(bytes.data(), halves.data(), bytes.size());
  } else {
    std::memcpy(bytes.data(), floats.data(), bytes.size());
  }
  return bytes;
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
  check(stored == StoredType::F32 || stored == StoredType::BF16, ExitCode::usage,
        "weights can be stored as F32 or BF16, not as ", stored_name(stored));
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  check(!error, ExitCode::files, directory, ": cannot be created: ", error.message());

  save_config(directory, config);
  save_parameters(in(directory, kWeightsFile), parameters, stored);
}

void write_if_changed(const std::string& path, const std::string& text) {
  if (!has_text(path, text)) write_atomically(path, text);
}

void save_parameters(const std::string& path, const ParameterStore& parameters, StoredType stored) {
  SafetensorsWriter writer;
  std::vector<std::vector<std::byte>> bytes;
  bytes.reserve(parameters.all().size());
  for (const ParameterStore::Parameter& p : parameters.all()) {
    bytes.push_back(stored_bytes(p, stored));
    writer.add(p.name, stored, {p.tensor.shape().begin(), p.tensor.shape().end()}, bytes.back());
  }
  writer.set_metadata("producer", "fovea " FOVEA_VERSION);
  writer.write(path);
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
  check_header(file, loaded.model->parameters());
  loaded.model->parameters().place();
  load_parameters(file, loaded.model->parameters());
  return loaded;
}

void load_parameters(const SafetensorsFile& file, const ParameterStore& parameters) {
  check_header(file, parameters);
  for (const ParameterStore::Parameter& p : parameters.all()) {
    const TensorInfo& info = file.get(p.name);
    file.verify(info);
    const std::vector<float> values = floats_of(file, info);
    const size_t bad = first_not_finite(values);
    check(bad == values.size(), ExitCode::model, location(file, p.name), "element ", bad, " is ",
          bad < values.size() ? values[bad] : 0.0f,
          ", weights must be finite; use an earlier checkpoint");
    assign(p.tensor, values);
  }
  parameters_changed();
}

}  // namespace fovea
