#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace fovea {

// Reads and checks a model directory, and describes its configuration, parameters, files,
// vocabulary and training history. Throws ExitCode::model if the model is damaged.
nlohmann::ordered_json describe_model(const std::string& directory);

// Returns the description as text. Lists have lines of at most 80 columns.
std::string description_text(const nlohmann::ordered_json& description);

}  // namespace fovea
