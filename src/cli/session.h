#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/model_selection.h"
#include "decode/package.h"
#include "ops/matmul.h"

namespace fovea {

class Command;
class Program;

// Adds --threads, --quiet and --log-format to the program. They may stand before or after the
// name of a command and are in force before it runs.
void add_session(Program& program);

// "f32", "bf16" or "int8".
Precision precision_named(const std::string& name);
// False on processors where products take f32 all the same.
bool gains_from_bf16(Device device);

// Which model a command uses, and how.
struct ModelChoice {
  std::vector<std::string> directories;  // several are an ensemble; none: a bundled model
  LanguageChoice languages = {};         // of the bundled model
  std::string device = "cpu", precision = "f32";

  Precision numbers() const { return precision_named(precision); }
};

// Adds --device, the same for every command that computes; see device_named().
void add_device_option(Command& command, std::string& device);
void add_precision_option(Command& command, std::string& precision);  // ModelChoice::numbers

// How many models a command takes with -m.
enum class Takes { ensemble, one, one_that_labels };

// The bundled model that a command uses without -m, --from and --to.
enum class DefaultModel { english_german, by_text };

// Adds -m, --from, --to, --device and --precision to a command.
void add_model_options(Command& command, ModelChoice& choice, Takes takes,
                       DefaultModel chosen = DefaultModel::english_german);

// Exit::usage where this program or this machine cannot do what was chosen.
Device device_of(const ModelChoice& choice);

// The models chosen, checked to fit each other. At least one. If neither -m nor --from is given,
// the language of sample() decides which bundled model is used.
std::vector<Package> load_models(const ModelChoice& choice,
                                 const std::function<std::string()>& sample = {});
std::vector<const Model*> models_of(const std::vector<Package>& packages);

// The model directory that -m names: itself, or where there is no such folder the model of that
// name that comes along, "de-en" or one of the gallery, "local-p". Exit::model where there is none,
// with the name that was probably meant.
std::string model_directory(const std::string& name);
// The same where the name may be that of a file, which need not be there.
std::string model_or_file(const std::string& name);
// The models that come along for use: the default model and those beside it.
std::vector<std::string> find_models();
// The tiny models that come along, one for each mechanism: models/gallery beside the default model,
// in alphabetical order.
std::vector<std::string> find_gallery();
// What a model translates, by its config.yml, else by its folder's name.
std::optional<std::pair<std::string, std::string>> languages_of_model(const std::string& directory);

// $FOVEA_HOME/models/en-de, else models/en-de in the first folder above the program that has one;
// "" if there is none.
std::string find_default_model();

}  // namespace fovea
