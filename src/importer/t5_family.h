#pragma once

#include <string>

#include "importer/foreign_pieces.h"
#include "importer/foreign_settings.h"
#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// T5, T5 1.1, Flan-T5 and mT5 of Hugging Face. Raffel et al.: Exploring the Limits of Transfer
// Learning with a Unified Text-to-Text Transformer, JMLR 2020.

// The network that config.json describes. ExitCode::model with the key if Fovea does not have it.
ModelConfig t5_config(const ForeignSettings& config, const ForeignPieces& pieces);

// Sets all parameters. `model` is the result of t5_config().
//
// T5 does not divide the attention scores by √d_k: the import multiplies W_Q by √d_k. Version 1.0
// multiplies the output of the decoder by 1/√D: the import multiplies the shared embeddings by
// 1/√D, and the model scales its inputs by √D. T5 has no biases: they are zero.
void map_t5(WeightMapping& weights, const ModelConfig& model, const ForeignPieces& pieces);

}  // namespace fovea
