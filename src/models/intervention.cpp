#include "models/intervention.h"

#include <algorithm>

#include "models/model_config.h"

namespace fovea {

bool WhatIf::masks(int64_t position) const {
  return std::ranges::find(masked, static_cast<int32_t>(position)) != masked.end();
}

bool WhatIf::silences(std::string_view kind, int64_t layer, int64_t head) const {
  return std::ranges::any_of(silent, [&](const HeadName& name) {
    return name.kind == kind && name.layer == layer && name.head == head;
  });
}

const WhatIf::Row* WhatIf::forced_row(int64_t step, int64_t layer, int64_t head) const {
  const Row* found = nullptr;
  for (const Row& row : forced)
    if (row.step == step && row.concerns(layer, head)) found = &row;
  return found;
}

HeadCount heads_of(const ModelConfig& config, std::string_view kind) {
  if (const auto* own = config.as<RecurrentConfig>())
    return kind == "cross" && own->attention.attends() ? HeadCount{1, 1} : HeadCount{};
  const auto* own = config.as<TransformerConfig>();
  if (own && kind == "encoder") return {config.encoder_layers, own->heads};
  if (own && kind == "decoder" && own->recurrent_decoder()) return {};
  if (own && (kind == "decoder" || kind == "cross")) return {config.decoder_layers, own->heads};
  return {};
}

}  // namespace fovea
