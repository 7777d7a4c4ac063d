#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// The directory of a model: `name` itself if it is a path that exists, else the bundled model of
// this name: "de-en", or "local-p" of the gallery. ExitCode::model if there is none; the message
// proposes the most similar name.
std::string model_directory(const std::string& name);
// The same, but `name` may also be a file, which need not exist.
std::string model_or_file(const std::string& name);
// The directories of the bundled models, in alphabetical order.
std::vector<std::string> find_models();
// The directories of the tiny models of models/gallery, one per mechanism, in alphabetical order.
std::vector<std::string> find_gallery();
// The languages of a model, by its config.yml, else by the name of its folder.
std::optional<std::pair<std::string, std::string>> languages_of_model(const std::string& directory);

// $FOVEA_HOME/models/en-de, else models/en-de in the first folder above the program that has one;
// "" if there is none.
std::string find_default_model();

}  // namespace fovea
