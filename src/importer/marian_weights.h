#pragma once

#include "importer/foreign_pieces.h"
#include "importer/option_table.h"
#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// Transformers of Marian (Junczys-Dowmunt et al., ACL 2018), with self-attention or the SSRU of
// Kim et al. (WNGT 2019) in the decoder, as in the models of Bergamot and Firefox.

// The network that the options describe. ExitCode::model with the option if Fovea has no such
// network. `weights` shows whether optional tensors exist.
ModelConfig marian_config(const OptionTable& options, const ForeignPieces& source,
                          const ForeignPieces& target);

// Sets all parameters. `model` is the result of marian_config().
void map_marian(WeightMapping& weights, const ModelConfig& model, const OptionTable& options,
                const TensorArchive& archive, const ForeignPieces& source,
                const ForeignPieces& target);

}  // namespace fovea
