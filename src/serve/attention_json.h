#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "serve/engine.h"

namespace fovea {

// Everything a page can show of one translated sentence: pieces and words of both sides, every
// attention matrix as bytes (weight × 255, base64), what the mechanism has of its own, and for each
// step what else the model would have written. docs/serve.md describes it field by field. Computes:
// for threads of the batcher.
nlohmann::ordered_json attention_json(const Engine& engine, const std::string& sentence,
                                      const Translation& translation);

// A model as /v1/models lists it.
nlohmann::ordered_json model_json(const Engine& engine);

std::string base64(std::string_view bytes);

}  // namespace fovea
