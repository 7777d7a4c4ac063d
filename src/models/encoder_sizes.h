#pragma once

#include "models/config.h"
#include "nn/recurrent.h"

namespace fovea {

// The recurrent encoder that a configuration asks for.
inline RecurrentStack::Sizes encoder_sizes(const ModelConfig& c) {
  return {.kind = c.cell,
          .in = c.embedding_size(),
          .H = c.annotation_size() / (c.bidirectional ? 2 : 1),
          .layers = c.encoder_layers,
          .reading = c.bidirectional ? Reading::both_ways : Reading::forward,
          .dropout = c.dropout};
}

}  // namespace fovea
