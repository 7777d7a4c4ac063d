#include "cli/model_options.h"

#include <omp.h>

#include <memory>

#include "base/log.h"
#include "cli/command_line.h"
#include "models/decodable.h"
#include "text/language.h"

namespace fovea {
namespace {

struct GlobalOptions {
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

std::string model_help(ModelCount count, DefaultModel default_model) {
  if (count == ModelCount::one_that_labels)
    return "Directory of a model that labels texts, made by 'fovea train'; required";
  std::string help = "Model directory, or the name of a bundled model; default: ";
  help += default_model == DefaultModel::by_text ? "by the language of the text" : "en-de";
  return help + (count == ModelCount::one ? "" : "; repeat for an ensemble");
}

// Throws if the models of an ensemble translate in opposite directions. They may have the same
// vocabulary, but together they would produce nonsense. Ignores names of folders that only look
// like languages ("run-one").
void check_directions(const std::vector<ModelBundle>& bundles) {
  const auto first = languages_of_model(bundles.front().directory);
  for (const ModelBundle& other : bundles) {
    const auto languages = languages_of_model(other.directory);
    if (!first || !languages) continue;
    const bool opposite = first->first != first->second && first->first == languages->second &&
                          first->second == languages->first;
    check(!opposite, ExitCode::model, other.directory, ": translates in the opposite direction of ",
          bundles.front().directory, ", according to their names; all models of an ensemble must ",
          "have the same direction");
  }
}

}  // namespace

void add_global_options(Program& program) {
  auto options = std::make_shared<GlobalOptions>();
  program.option("--threads", options->threads, "Number of threads; 0: one per core")
      .within(0, 1024)
      .from_environment("FOVEA_THREADS");
  program.flag("-q,--quiet", options->quiet, "Print only warnings and errors, no progress");
  program.option("--log-format", options->log_format, "Format of messages on standard error")
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
  return as_operand(Tensor::zeros({1, 1}, ElementType::f32, device)).type() == ElementType::bf16;
}

void add_device_option(Command& command, std::string& device) {
  command.option("--device", device, "Device to compute on")
      .among({"cpu", "cuda"})
      .synonyms({{"gpu", "cuda"}, {"cuda:0", "cuda"}})
      .ignore_case()
      .with_default()
      .from_environment("FOVEA_DEVICE");
}

void add_precision_option(Command& command, std::string& precision) {
  command.option("--precision", precision, "Arithmetic precision of matrix products")
      .among({"f32", "bf16", "int8"})
      .with_default()
      .from_environment("FOVEA_PRECISION");
}

void add_batch_option(Command& command, int64_t& batch_tokens) {
  command.option("--batch-tokens", batch_tokens, "Maximum number of pieces computed together")
      .within(1, 1 << 20)
      .with_default();
}

std::pair<Option, Option> add_pair_options(Command& command, std::string& source,
                                           std::string& target) {
  return {
      command
          .option("-s,--source,source", source, "Source sentences, one per line (.gz, - for stdin)")
          .takes("FILE"),
      command.option("-t,--target,target", target, "Their translations, line by line")
          .takes("FILE")};
}

void add_recipe_options(Command& command, std::vector<std::string>& assignments, std::string& data,
                        std::string& device, std::string& precision) {
  command.option("--set", assignments, "Override a setting of the recipe, for example train.seed=2")
      .takes("KEY=VALUE")
      .repeated();
  command
      .option(
          "--data", data,
          "Folder that relative paths start at; default: $FOVEA_DATA, current or recipe's folder")
      .takes("DIR");
  add_device_option(command, device);
  command
      .option("--precision", precision,
              "Arithmetic precision of matrix products; default: that of the recipe")
      .among({"f32", "bf16"});
}

void add_adapter_option(Command& command, std::string& adapter) {
  command
      .option("--adapter", adapter,
              "Adapter directory, made by 'fovea train' with train.lora.rank, for the model")
      .takes("DIR");
}

void add_model_options(Command& command, ModelChoice& choice, ModelCount count,
                       DefaultModel default_model) {
  command.option("-m,--model", choice.directories, model_help(count, default_model).c_str())
      .takes("DIR")
      .one_value_each()
      .from_environment("FOVEA_MODEL");
  if (count != ModelCount::one_that_labels) {
    add_adapter_option(command, choice.adapter);
    command.option("--from", choice.languages.from, "Language of the text, for a bundled model")
        .takes("CODE");
    command.option("--to", choice.languages.to, "Language of the translation, for a bundled model")
        .takes("CODE");
  }
  add_device_option(command, choice.device);
  add_precision_option(command, choice.precision);
}

Device device_of(const ModelChoice& choice) {
  const Device device = device_named(choice.device);
  check(choice.matmul_precision() != Precision::int8 || device == Device{Cpu{}}, ExitCode::usage,
        "--precision int8 requires --device cpu; use --precision bf16 with --device ",
        choice.device);
  return device;
}

std::vector<ModelBundle> load_models(const ModelChoice& choice,
                                     const std::function<std::string()>& sample) {
  const Device device = device_of(choice);
  check(
      choice.directories.empty() || choice.languages.empty(), ExitCode::usage,
      "--from and --to choose a bundled model, but -m (or $FOVEA_MODEL) names a model; give only ",
      "one of the two");
  std::vector<std::string> directories = choice.directories;
  if (directories.empty()) {
    const bool detects = sample && choice.languages.from.empty();
    directories.push_back(bundled_model_for(choice.languages, detects ? sample() : ""));
  }
  check(choice.adapter.empty() || directories.size() == 1, ExitCode::usage,
        "--adapter belongs to one model, but -m names several; give one of them, or merge the ",
        "adapter with 'fovea average'");
  std::vector<ModelBundle> bundles;
  for (std::string directory : directories) {
    directory = model_directory(directory);
    bundles.push_back(load_package(directory, device, choice.adapter));
    check(bundles.back().model->as<Decodable>(), ExitCode::model, directory,
          ": this model labels texts and cannot translate; use 'fovea classify -m ", directory,
          "'");
    bundles.back().model->freeze_for_inference();
  }
  check_directions(bundles);
  check_ensemble(bundles);
  return bundles;
}

std::vector<const Model*> models_of(const std::vector<ModelBundle>& bundles) {
  std::vector<const Model*> models;
  for (const ModelBundle& bundle : bundles) models.push_back(bundle.model.get());
  return models;
}

}  // namespace fovea
