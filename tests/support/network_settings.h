#pragma once

#include <string_view>

#include "models/model_config.h"

namespace fovea {

// The settings of the network of a configuration. REQUIRES: it has this type.
template <class Config>
auto& transformer_of(Config& config) {
  return std::get<TransformerConfig>(config.network);
}
template <class Config>
auto& recurrent_of(Config& config) {
  return std::get<RecurrentConfig>(config.network);
}
template <class Config>
auto& reader_of(Config& config) {
  return std::get<ReaderConfig>(config.network);
}

// Replaces the network by one of a type, with the default settings.
inline void choose_network(ModelConfig& config, std::string_view type) {
  if (type == TransformerConfig::kName) config.network = TransformerConfig();
  if (type == RecurrentConfig::kName) config.network = RecurrentConfig();
  if (type == ReaderConfig::kName) config.network = ReaderConfig();
}

}  // namespace fovea
