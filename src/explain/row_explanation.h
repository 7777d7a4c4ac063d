#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/model_bundle.h"

namespace fovea {

// How one row of one attention matrix of a pair comes about.
struct RowExplanation {
  AttentionRow row;
  std::string mechanism = {};            // "global attention, score dot"; empty: multi-head
  std::vector<std::string> asking = {};  // all pieces of the side that asks; row.row is one of them
  std::vector<std::string> pieces = {};  // that it looks at
  ComputationSteps steps = {};
};

// What a model of this configuration calls its attention; empty: multi-head. ExitCode::usage where
// it was trained without.
std::string mechanism_of(const ModelConfig& config);

// Both sides as ids with </s>. ExitCode::usage where the model has no such attention, layer, head
// or row.
RowExplanation explain_row(const ModelBundle& package, std::span<const int32_t> source,
                           std::span<const int32_t> target, const AttentionRow& row);

// What the decoder has read when it writes each word: <s>, and all words but the last.
std::vector<int32_t> read_before(std::span<const int32_t> target);

}  // namespace fovea
