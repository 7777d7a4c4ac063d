#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "decode/model_bundle.h"
#include "models/adapter_directory.h"
#include "ops/matmul.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr const char* kExamples = R"(Examples:
  The mean of the last checkpoints of a run (of snapshots/ with train.average):
    fovea average -o averaged model/checkpoints/*.safetensors

  The mean of three models trained with different seeds from the same initial weights:
    fovea average -o mean run1 run2 run3

  Store a model in int8, which needs a quarter of the space (bf16: half):
    fovea average -o small --store int8 model

  The same, replacing the model in small:
    fovea average -o small --store int8 --force model

  Merge an adapter into its model:
    fovea average -o merged --adapter adapter model

Configuration and vocabulary come from the first model, or from the model directory of the first
file. All inputs must have the same parameters.)";

struct AverageCommand {
  std::string output, store = "f32", adapter;
  std::vector<std::string> inputs;
  bool force = false;
};

std::string model_or_checkpoint(const std::string& name) {
  return name.ends_with(".safetensors") ? name : model_directory(name);
}

// Returns the directory of the model or run that contains the input. If the run has not written a
// model yet, load_config() throws an error with the remedy.
std::string home_of(const std::string& input) {
  std::error_code error;
  const fs::path start = fs::absolute(input, error).lexically_normal();
  for (const char* const marker : {kConfigFile, "checkpoints"})
    for (fs::path path = start; path.has_relative_path(); path = path.parent_path())
      if (fs::exists(path / marker, error)) return path.string();
  fail(ExitCode::model, input, ": no ", kConfigFile,
       " in this folder or its parents; name a model directory, or ", "a checkpoint inside one");
}

// Throws if the output is an existing model and --force is not given.
void check_output(const AverageCommand& command) {
  std::error_code error;
  for (const char* name : {kWeightsFile, kConfigFile})
    check(command.force || !fs::exists(fs::path(command.output) / name, error), ExitCode::usage,
          command.output,
          ": the directory already holds a model; choose another one with -o, or use ",
          "--force to replace it");
}

// Removes the vocabularies of the replaced model. Otherwise, if the new vocabularies have other
// names, the directory would hold both.
void remove_vocabularies(const std::string& directory) {
  std::error_code error;
  for (const char* name : {"vocab", "source", "target"})
    for (const char* ending : {".spm", ".txt"})
      fs::remove(fs::path(directory) / (std::string(name) + ending), error);
}

StoredType stored_type_of(const std::string& name) {
  if (name == "int8") return StoredType::I8;
  return name == "bf16" ? StoredType::BF16 : StoredType::F32;
}

void average(const AverageCommand& command) {
  check_output(command);
  check(command.adapter.empty() || command.inputs.size() == 1, ExitCode::usage,
        "--adapter belongs to one model, but ", command.inputs.size(),
        " inputs are given; name only its model directory");
  check(command.adapter.empty() || !command.inputs.front().ends_with(".safetensors"),
        ExitCode::usage, command.inputs.front(), ": --adapter needs a model directory, not a file");
  std::vector<std::string> paths;
  for (const std::string& name : command.inputs) {
    const std::string input = model_or_checkpoint(name);
    std::error_code error;
    paths.push_back(fs::is_directory(input, error) ? weights_file(input) : input);
  }
  const std::string home = home_of(model_or_checkpoint(command.inputs.front()));
  const ModelConfig config = load_config(home);
  const VocabularyPair vocabularies = load_vocabularies(home);
  const auto model = make_model(config, 1);
  model->parameters().values().copy_from(mean_weights(paths, model->parameters()));
  if (!command.adapter.empty()) merge_adapter(command.adapter, home, model->parameters());
  parameters_changed();
  save_model(command.output, config, model->parameters(), stored_type_of(command.store));
  if (command.force) remove_vocabularies(command.output);
  save_vocabularies(command.output, vocabularies.source, vocabularies.target);
  log_info("wrote {}: the mean of {} files, {} parameters", command.output, paths.size(),
           with_commas(model->parameters().size()));
}

}  // namespace

void add_average(Command& program) {
  Command command = program.command(
      "average", "Average the weights of models or checkpoints, or merge an adapter");
  auto c = std::make_shared<AverageCommand>();
  command.option("-o,--output", c->output, "Model directory to write")
      .required()
      .takes("MODEL_DIR");
  command.option("--store", c->store, "Data type of the stored weights")
      .among({"f32", "bf16", "int8"})
      .with_default();
  add_adapter_option(command, c->adapter);
  command.flag("--force", c->force, "Replace an existing model in MODEL_DIR");
  command
      .option("inputs", c->inputs,
              "Model directories, names of bundled models, checkpoints or snapshots")
      .required()
      .takes("MODEL_OR_CHECKPOINT ...");
  command.footer(kExamples);
  command.runs([c] { average(*c); });
}

}  // namespace fovea
