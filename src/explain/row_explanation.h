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
  std::vector<std::string> asking = {};  // pieces of the side of the queries, also of row.row
  std::vector<std::string> pieces = {};  // the pieces that the row attends to
  ComputationSteps steps = {};
};

// Returns the name of the model's attention mechanism, or "" for multi-head attention. Throws
// ExitCode::usage if the model has no attention.
std::string mechanism_of(const ModelConfig& config);

// Computes one row of attention with all steps. Both sides are ids with </s>. Throws
// ExitCode::usage if the model has no such attention, layer, head or row.
RowExplanation explain_row(const ModelBundle& package, std::span<const int32_t> source,
                           std::span<const int32_t> target, const AttentionRow& row);

// Returns for each target word the word that the decoder reads to write it: the last piece of the
// frame, then all target words except the last.
std::vector<int32_t> read_before(std::span<const int32_t> target, const SentenceFrame& frame);

}  // namespace fovea
