#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "serve/served_model.h"

namespace fovea {

// Warnings about a text that the model cannot read or write completely, given as its sentences and
// their translations: a list of objects with a code, a message and details (docs/serve.md,
// "Warnings"). Empty if there is nothing to report.
nlohmann::ordered_json warnings_of(const ServedModel& model, std::span<const std::string> sentences,
                                   std::span<const Translation> translations);

}  // namespace fovea
