#pragma once

#include <string>

#include "formats/tensor_archive.h"
#include "importer/foreign_pieces.h"
#include "importer/foreign_settings.h"
#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// The network of a model.bin of CTranslate2, a TransformerSpec. ExitCode::model with the variable
// if Fovea has no such network. `config`: config.json, without keys if there is none.
ModelConfig ctranslate2_config(const TensorArchive& archive, const ForeignSettings& config,
                               const ForeignPieces& source, const ForeignPieces& target);

// Whether the decoder starts from a zero vector instead of the embedding of a piece.
bool ctranslate2_starts_from_zero(const TensorArchive& archive);

// Sets all parameters. `model` is the result of ctranslate2_config().
void map_ctranslate2(WeightMapping& weights, const TensorArchive& archive, const ModelConfig& model,
                     const ForeignPieces& source, const ForeignPieces& target);

}  // namespace fovea
