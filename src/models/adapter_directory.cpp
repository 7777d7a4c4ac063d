#include "models/adapter_directory.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/utf8.h"
#include "models/model_directory.h"
#include "models/stored_weights.h"

namespace fovea {
namespace {

constexpr int64_t kMaxRank = 4096;

std::string in(const std::string& directory, const char* file) {
  return (std::filesystem::path(directory) / file).string();
}

std::string fingerprint_of_model(const std::string& directory) {
  return fmt::format("{:08x}", fingerprint_of(SafetensorsFile::open(weights_file(directory))));
}

AdapterConfig read_config(const std::string& directory) {
  std::error_code error;
  const std::string path = in(directory, kConfigFile);
  check(std::filesystem::exists(in(directory, kAdapterFile), error), ExitCode::model,
        in(directory, kAdapterFile), ": missing; an adapter directory has the matrices of the ",
        "adapter in this file, and 'fovea train' with train.lora.rank writes it");
  AdapterConfig config;
  Settings settings;
  settings.group("adapter", config);
  settings.read_file(path, ExitCode::model);
  return config;
}

// The targets of a file: the names in front of "/A". Checks the shapes, so that the memory of the
// adapter is at most that of the file.
std::vector<std::string> targets_of(const SafetensorsFile& file, const ParameterStore& model,
                                    int64_t rank) {
  constexpr std::string_view kEnd = "/A";
  std::vector<std::string> targets;
  for (const TensorInfo& a : file.tensors()) {
    if (!a.name.ends_with(kEnd)) continue;
    const std::string name = a.name.substr(0, a.name.size() - kEnd.size());
    const std::string where = file.path() + ": tensor '" + printable(a.name) + "': ";
    const ParameterStore::Parameter* w = model.find(name);
    check(w && w->tensor.rank() == 2, ExitCode::model, where, "the model has no such matrix; ",
          "use the model that the adapter was trained for");
    const TensorInfo* b = file.find(name + "/B");
    const std::vector<int64_t> shape_a{rank, w->tensor.size(1)}, shape_b{w->tensor.size(0), rank};
    check(b && a.shape == shape_a && b->shape == shape_b, ExitCode::model, where,
          "it and its partner '/B' do not have rank ", rank, " and the sizes of the matrix ",
          w->tensor.shape(), "; use the files of one adapter and the model it was trained for");
    targets.push_back(name);
  }
  check(!targets.empty(), ExitCode::model, file.path(), ": no tensor is named NAME/A, as in the ",
        "adapters that 'fovea train' writes");
  return targets;
}

}  // namespace

void AdapterConfig::describe(Settings& s) {
  s.field("base", base, "model directory that the adapter was trained for");
  s.field("fingerprint", fingerprint, "checksum of the weights of that model");
  s.field("rank", size.rank, "rank of the product B A").between(1, kMaxRank);
  s.field("alpha", size.alpha, "the scale of B A is alpha / rank").between(1e-6, 1e6);
}

AdapterConfig adapter_of(const std::string& directory, const AdapterSize& size) {
  return {directory, fingerprint_of_model(directory), size};
}

void save_adapter(const std::string& directory, const AdapterConfig& config,
                  const LowRankAdapter& adapter) {
  AdapterConfig copy = config;
  Settings settings;
  settings.group("adapter", copy, "the model that adapter.safetensors belongs to");
  save_parameters(in(directory, kAdapterFile), adapter.parameters());
  write_if_changed(in(directory, kConfigFile), settings.dump());
}

void load_adapter(const std::string& directory, const LowRankAdapter& adapter) {
  load_parameters(SafetensorsFile::open(in(directory, kAdapterFile)), adapter.parameters());
}

void merge_adapter(const std::string& directory, const std::string& base,
                   const ParameterStore& model) {
  const AdapterConfig config = read_config(directory);
  const std::string found = fingerprint_of_model(base);
  check(found == config.fingerprint, ExitCode::model, in(directory, kConfigFile),
        ": adapter.fingerprint: ", printable(config.fingerprint), ", but the weights of ", base,
        " have ", found,
        "; use the model that the adapter was trained for: ", printable(config.base));
  const SafetensorsFile file = SafetensorsFile::open(in(directory, kAdapterFile));
  LowRankAdapter adapter(model, targets_of(file, model, config.size.rank), config.size);
  adapter.parameters().place();
  load_parameters(file, adapter.parameters());
  adapter.merge();
}

}  // namespace fovea
