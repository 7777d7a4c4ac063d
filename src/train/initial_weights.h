#pragma once

#include <cstdint>
#include <string>

#include "nn/params.h"
#include "train/data.h"

namespace fovea {

struct CopiedWeights {
  int64_t pieces = 0, new_pieces = 0;  // rows of embeddings: copied, and left as initialised
};

// Copies the weights of the model in `directory` into a new model's parameters (fine-tuning).
// Embeddings and output rows go by piece, so that the vocabularies may differ: a row whose piece
// the other model does not have keeps its random start. All other shapes must be equal:
// Exit::data names the first parameter that differs.
CopiedWeights copy_weights(const std::string& directory, const TrainData& data,
                           const ParameterStore& store);

}  // namespace fovea
