#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// Returns the directory of a model. If `name` is a path that exists, this is `name` itself,
// otherwise the bundled model of this name ("de-en", or "local-p" of the gallery). If there is
// none, throws ExitCode::model with the most similar name.
std::string model_directory(const std::string& name);
// Like model_directory(), but `name` may also be the path of a file, which need not exist.
std::string model_or_file(const std::string& name);
// The directories of the bundled models, sorted by name.
std::vector<std::string> find_models();
// The directories of the tiny models in models/gallery (one per mechanism), sorted by name.
std::vector<std::string> find_gallery();
// Returns the source and target language of a model from its config.yml. If it names none, takes
// them from the name of the directory ("en-de-small").
std::optional<std::pair<std::string, std::string>> languages_of_model(const std::string& directory);

// If $FOVEA_HOME is set, returns its models/en-de, otherwise models/en-de in the nearest folder
// above the program that has it. If there is none, returns "".
std::string find_default_model();

}  // namespace fovea
