#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// Returns the directory of a model: `name` itself if it is a path that exists, else the bundled
// model of this name ("de-en", or "local-p" of the gallery). Throws ExitCode::model if there is
// none; the message proposes the most similar name.
std::string model_directory(const std::string& name);
// Like model_directory(), but `name` may also be the path of a file, which need not exist.
std::string model_or_file(const std::string& name);
// The directories of the bundled models, in alphabetical order.
std::vector<std::string> find_models();
// The directories of the tiny models of models/gallery, one per mechanism, in alphabetical order.
std::vector<std::string> find_gallery();
// Returns the source and target language of a model: those of its config.yml, else those in the
// name of its folder ("en-de-small").
std::optional<std::pair<std::string, std::string>> languages_of_model(const std::string& directory);

// Returns $FOVEA_HOME/models/en-de, else models/en-de in the nearest folder above the program that
// has it, or "" if there is none.
std::string find_default_model();

}  // namespace fovea
