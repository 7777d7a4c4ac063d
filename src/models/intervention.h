#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct ModelConfig;

// The position of one attention head in a model, with the fields of AttentionMap.
struct HeadName {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0;

  bool operator==(const HeadName&) const = default;
};

// An intervention: changes of a model's attention weights, to study their effect on the output. A
// position is the index of a source piece, counted from 0; </s> is a piece, too.
struct WhatIf {
  // Weights of the cross-attention at one decoder step, which replace the computed weights.
  struct Row {
    int64_t step = 0;                  // number of the decoder step, from 0
    int64_t layer = -1, head = -1;     // −1: all layers, all heads
    std::vector<double> weights = {};  // one weight per source piece, with sum 1

    bool concerns(int64_t at_layer, int64_t at_head) const {
      return (layer < 0 || layer == at_layer) && (head < 0 || head == at_head);
    }
  };

  std::vector<int32_t> masked = {};   // positions with weight 0; the other weights sum to 1
  std::vector<HeadName> silent = {};  // heads with output 0; maps show their weights as 0
  std::vector<Row> forced = {};

  bool empty() const { return masked.empty() && silent.empty() && forced.empty(); }
  bool masks(int64_t position) const;
  bool silences(std::string_view kind, int64_t layer, int64_t head) const;
  // The last row of `forced` for this step and head. If there is none, null.
  const Row* forced_row(int64_t step, int64_t layer, int64_t head) const;
};

// The number of layers, and of heads per layer, of one kind of attention in a network. If the
// network has no attention of this kind, {0, 0}.
struct HeadCount {
  int64_t layers = 0, heads = 0;
};
HeadCount heads_of(const ModelConfig& config, std::string_view kind);

}  // namespace fovea
