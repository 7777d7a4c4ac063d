#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/model_bundle.h"

namespace fovea {

// The computation of one row of an attention matrix.
struct RowExplanation {
  AttentionRow row;
  std::string mechanism = {};            // "global attention, score dot"; empty: multi-head
  std::vector<std::string> asking = {};  // all pieces of the querying side; row.row is one of them
  std::vector<std::string> pieces = {};  // the pieces that it attends to
  ComputationSteps steps = {};
};

// The name of the model's attention mechanism; empty for multi-head attention. Throws
// ExitCode::usage if the model has no attention.
std::string mechanism_of(const ModelConfig& config);

// Both sides are ids with </s>. Throws ExitCode::usage if the model has no such attention, layer,
// head or row.
RowExplanation explain_row(const ModelBundle& package, std::span<const int32_t> source,
                           std::span<const int32_t> target, const AttentionRow& row);

// The input word of the decoder for each word that it writes: <s>, and all words except the last.
std::vector<int32_t> read_before(std::span<const int32_t> target);

}  // namespace fovea
