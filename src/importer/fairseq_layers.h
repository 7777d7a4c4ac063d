#pragma once

#include <string>

#include "importer/weight_mapping.h"
#include "models/model_config.h"

namespace fovea {

// Sets the parameters of all layers, and of the norms after the stacks, from tensors with the names
// of fairseq: `encoder.layers.0.self_attn.q_proj.weight`. `prefix` precedes each name. Matrices are
// [out, in] in both programs.
void map_fairseq_layers(WeightMapping& weights, const ModelConfig& model,
                        const std::string& prefix);

// Sets g and b of a norm from NAME.weight and NAME.bias.
void map_norm(WeightMapping& weights, const std::string& norm, const std::string& name);

}  // namespace fovea
