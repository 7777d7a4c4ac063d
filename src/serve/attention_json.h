#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "serve/served_model.h"

namespace fovea {

// The JSON of a translated sentence for web pages: pieces and words of both sides, each attention
// matrix as bytes (weight × 255, base64), additional values of the mechanism, and the most probable
// words of each step. docs/serve.md describes each field. It runs the model, so only worker threads
// should call it.
nlohmann::ordered_json attention_json(const ServedModel& model, const std::string& sentence,
                                      const Translation& translation);

// Returns the object of a model in the answer of /v1/models.
nlohmann::ordered_json model_json(const ServedModel& model);

double rounded(double value);  // to 6 decimals

// The limit of the attention in one answer, in bytes of JSON. The maps of a sentence grow with the
// square of its length and with the number of heads, so a limit of characters would not limit it.
inline constexpr size_t kMaxAttentionBytes = 8 << 20;
size_t bytes_of_maps(std::span<const AttentionMap> maps);  // in JSON, without the other fields
std::string attention_too_large();                         // the message of status 400

}  // namespace fovea
