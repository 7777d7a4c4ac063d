#pragma once

#include "importer/foreign_pieces.h"
#include "importer/option_table.h"
#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// The options of the network of a checkpoint: cfg.model, or args before fairseq 0.10.
OptionTable fairseq_options(const TensorArchive& archive);

// The network that the options describe. ExitCode::model with the option if Fovea has no such
// network.
ModelConfig fairseq_config(const OptionTable& options, const ForeignPieces& source,
                           const ForeignPieces& target);

// Sets all parameters. `model` is the result of fairseq_config().
void map_fairseq(WeightMapping& weights, const ModelConfig& model, const TensorArchive& archive,
                 const ForeignPieces& source, const ForeignPieces& target);

}  // namespace fovea
