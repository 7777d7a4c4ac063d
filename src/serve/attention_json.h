#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>

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

// The limit of the attention in one answer, in bytes of JSON. The maps of a sentence grow with the
// square of its length and with the number of heads, so that a limit of characters bounds nothing.
inline constexpr size_t kMaxAttentionBytes = 8 << 20;
size_t bytes_of_maps(std::span<const AttentionMap> maps);  // in JSON, without what is around them
std::string attention_too_large();                         // the message of a Refusal 400

std::string base64(std::string_view bytes);

}  // namespace fovea
