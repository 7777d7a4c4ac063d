#pragma once

#include <cstdint>
#include <string>

#include "nn/params.h"
#include "train/training_data.h"

namespace fovea {

struct CopiedWeights {
  int64_t pieces = 0, new_pieces = 0;  // embedding rows: copied; not copied (random values)
};

// Copies the weights of the model in `directory` to the parameters of a new model (fine-tuning).
// The rows of embeddings and of the output layer are matched by piece, so the vocabularies may
// differ. If the model in `directory` does not have a piece, the row of the piece keeps its random
// values. All other shapes must be equal. Throws ExitCode::data with the first parameter that
// differs.
CopiedWeights copy_weights(const std::string& directory, const TrainData& data,
                           const ParameterStore& store);

}  // namespace fovea
