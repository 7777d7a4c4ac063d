#pragma once

#include <string>

#include "importer/foreign_pieces.h"
#include "importer/foreign_settings.h"
#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// The encoder-decoders of Hugging Face whose tensors have the names of fairseq: Marian, BART,
// mBART, M2M100 and NLLB. Lewis et al.: BART, ACL 2020; Fan et al.: Beyond English-Centric
// Multilingual Machine Translation, JMLR 2021.

// Returns whether `model_type` of config.json is one of them.
bool is_bart_family(const std::string& model_type);

// The network that config.json describes. ExitCode::model with the key if Fovea does not have it.
ModelConfig bart_family_config(const ForeignSettings& config, const ForeignPieces& source,
                               const ForeignPieces& target);

// Sets all parameters. `model` is the result of bart_family_config().
void map_bart_family(WeightMapping& weights, const ModelConfig& model,
                     const ForeignSettings& config, const ForeignPieces& source,
                     const ForeignPieces& target);

}  // namespace fovea
