#pragma once

#include "models/model_config.h"
#include "nn/recurrent_layers.h"

namespace fovea {

// The sizes of the recurrent encoder of a configuration.
inline RecurrentStack::Sizes encoder_sizes(const ModelConfig& c) {
  return {.kind = c.cell,
          .in = c.embedding_size(),
          .H = c.annotation_size() / (c.bidirectional ? 2 : 1),
          .layers = c.encoder_layers,
          .reading = c.bidirectional ? EncoderDirections::both_ways : EncoderDirections::forward,
          .dropout = c.dropout};
}

}  // namespace fovea
