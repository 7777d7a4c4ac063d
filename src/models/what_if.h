#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct ModelConfig;

// One attention of a model, as its maps name it.
struct HeadName {
  std::string kind;  // "encoder", "decoder", "cross"
  int64_t layer = 0, head = 0;

  bool operator==(const HeadName&) const = default;
};

// What is done to a model's attention, to see what it makes of that. Places are those of source
// pieces, </s> included.
struct WhatIf {
  // The attention to the source of one step: what it would be is not asked.
  struct Row {
    int64_t step = 0;                  // of the decoder, from 0
    int64_t layer = -1, head = -1;     // −1: all
    std::vector<double> weights = {};  // of every source piece, Σ = 1

    bool concerns(int64_t at_layer, int64_t at_head) const {
      return (layer < 0 || layer == at_layer) && (head < 0 || head == at_head);
    }
  };

  std::vector<int32_t> masked = {};   // nothing looks at these: weight 0, the rest renormalised
  std::vector<HeadName> silent = {};  // their answers are 0, and their weights shown as 0
  std::vector<Row> forced = {};

  bool empty() const { return masked.empty() && silent.empty() && forced.empty(); }
  bool masks(int64_t place) const;
  bool silences(std::string_view kind, int64_t layer, int64_t head) const;
  // The last such row; null where this attention is free.
  const Row* forced_row(int64_t step, int64_t layer, int64_t head) const;
};

// How many layers with how many heads a network has of a kind of attention; none: {0, 0}.
struct HeadCount {
  int64_t layers = 0, heads = 0;
};
HeadCount heads_of(const ModelConfig& config, std::string_view kind);

}  // namespace fovea
