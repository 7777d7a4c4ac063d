#include "train/recipe_reader.h"

#include <algorithm>

#include "decode/model_lookup.h"
#include "models/model_directory.h"
#include "train/training_data.h"

namespace fovea {
namespace {

void check_network(const ModelConfig& base, const TrainOptions& options, ExitCode code) {
  const RunIdentity before = network_settings(base), now = network_settings(options.model);
  for (const auto& [path, value] : now) {
    const auto at = std::ranges::find(before, path, &RunIdentity::value_type::first);
    check(at != before.end() && at->second == value, code, path, ": found ", value,
          ", but the model of train.from, ", options.train.from, ", has ",
          at == before.end() ? "no such setting" : at->second, "; omit ", path,
          ", or omit train.from to train a new model");
  }
}

}  // namespace

TrainOptions read_recipe(const std::function<void(Settings& settings)>& assign, ExitCode code) {
  TrainOptions given;
  Settings settings(given);
  assign(settings);
  if (given.train.from.empty()) return given;
  const std::string directory = model_directory(given.train.from);
  const ModelConfig base = load_config(directory);
  TrainOptions options;
  options.model = base;
  options.model.source_words = options.model.target_words = 0;  // from the vocabularies
  Settings again(options);
  assign(again);
  options.train.from = directory;
  check_network(base, options, code);
  return options;
}

}  // namespace fovea
