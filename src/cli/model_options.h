#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "decode/model_bundle.h"
#include "decode/model_lookup.h"
#include "decode/model_selection.h"
#include "ops/matmul.h"

namespace fovea {

class Command;
class Option;
class Program;

// Adds --threads, --quiet and --log-format to the program. Users may give them before or after the
// name of a command. They take effect before the command runs.
void add_global_options(Program& program);

// Returns the precision with the name "f32", "bf16" or "int8".
Precision precision_named(const std::string& name);
// Whether matrix products of the device use bf16. If not, they use f32 despite Precision::bf16.
bool gains_from_bf16(Device device);

// The options that choose models, device and precision of a command.
struct ModelChoice {
  std::vector<std::string> directories;           // several: an ensemble; empty: a bundled model
  LanguageChoice languages = {};                  // to choose a bundled model
  std::string device = "cpu", precision = "f32";  // as on the command line

  Precision matmul_precision() const { return precision_named(precision); }
};

// Adds --device. device_named() converts its value to a device.
void add_device_option(Command& command, std::string& device);
void add_precision_option(Command& command, std::string& precision);

// Adds --batch-tokens to a command that computes with given sentence pairs.
void add_batch_option(Command& command, int64_t& batch_tokens);
// Adds -s and -t: two files with the same number of lines.
std::pair<Option, Option> add_pair_options(Command& command, std::string& source,
                                           std::string& target);

// Adds --set, --data, --device and --precision to a command that trains from a recipe.
void add_recipe_options(Command& command, std::vector<std::string>& assignments, std::string& data,
                        std::string& device, std::string& precision);

// The models that a command accepts with -m.
enum class ModelCount { ensemble, one, one_that_labels };

// The bundled model that a command uses without -m, --from and --to.
enum class DefaultModel { english_german, by_text };

// Adds -m, --from, --to, --device and --precision to a command.
void add_model_options(Command& command, ModelChoice& choice, ModelCount count,
                       DefaultModel default_model = DefaultModel::english_german);

// Returns the chosen device. Throws ExitCode::usage if the program or the machine does not support
// the device or the precision.
Device device_of(const ModelChoice& choice);

// Loads the chosen models, at least one, and checks that they can form an ensemble. If neither -m
// nor --from is given, the language of sample() selects the bundled model.
std::vector<ModelBundle> load_models(const ModelChoice& choice,
                                     const std::function<std::string()>& sample = {});
std::vector<const Model*> models_of(const std::vector<ModelBundle>& bundles);

}  // namespace fovea
