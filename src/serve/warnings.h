#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "serve/engine.h"

namespace fovea {

// What a model cannot read of a text, given as its sentences: a list of objects with a code, a
// message and numbers (docs/serve.md, "Warnings"); empty where there is nothing to report.
nlohmann::ordered_json warnings_of(const Engine& engine, std::span<const std::string> sentences);

}  // namespace fovea
