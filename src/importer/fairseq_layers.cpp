#include "importer/fairseq_layers.h"

#include <utility>

namespace fovea {
namespace {

void map_affine(WeightMapping& weights, const std::string& layer, const std::string& name) {
  weights.copy(layer + "/W", name + ".weight");
  weights.copy(layer + "/b", name + ".bias");
}

void map_attention(WeightMapping& weights, const std::string& attend, const std::string& name) {
  for (const auto& [letter, projection] : {std::pair("Q", "q"), {"K", "k"}, {"V", "v"}}) {
    weights.copy(attend + "/W_" + letter, name + "." + projection + "_proj.weight");
    weights.copy(attend + "/b_" + letter, name + "." + projection + "_proj.bias");
  }
  map_affine(weights, attend + "/W_O", name + ".out_proj");
}

void map_feed_forward(WeightMapping& weights, const std::string& layer, const std::string& name) {
  map_affine(weights, layer + "/feed_forward/W_1", name + ".fc1");
  map_affine(weights, layer + "/feed_forward/W_2", name + ".fc2");
}

}  // namespace

void map_norm(WeightMapping& weights, const std::string& norm, const std::string& name) {
  weights.copy(norm + "/g", name + ".weight");
  weights.copy(norm + "/b", name + ".bias");
}

void map_fairseq_layers(WeightMapping& weights, const ModelConfig& model,
                        const std::string& prefix) {
  for (int64_t i = 0; i < model.encoder_layers; ++i) {
    const std::string layer = "encoder/layers/" + std::to_string(i);
    const std::string name = prefix + "encoder.layers." + std::to_string(i);
    map_attention(weights, layer + "/attend", name + ".self_attn");
    map_norm(weights, layer + "/norm_1", name + ".self_attn_layer_norm");
    map_feed_forward(weights, layer, name);
    map_norm(weights, layer + "/norm_2", name + ".final_layer_norm");
  }
  for (int64_t i = 0; i < model.decoder_layers; ++i) {
    const std::string layer = "decoder/layers/" + std::to_string(i);
    const std::string name = prefix + "decoder.layers." + std::to_string(i);
    map_attention(weights, layer + "/attend_self", name + ".self_attn");
    map_norm(weights, layer + "/norm_1", name + ".self_attn_layer_norm");
    map_attention(weights, layer + "/attend_source", name + ".encoder_attn");
    map_norm(weights, layer + "/norm_2", name + ".encoder_attn_layer_norm");
    map_feed_forward(weights, layer, name);
    map_norm(weights, layer + "/norm_3", name + ".final_layer_norm");
  }
  for (const char* stack : {"encoder", "decoder"})
    if (weights.wants(std::string(stack) + "/norm/g"))
      map_norm(weights, std::string(stack) + "/norm", prefix + stack + ".layer_norm");
}

}  // namespace fovea
