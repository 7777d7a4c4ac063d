#pragma once

#include <span>
#include <string>
#include <vector>

#include "decode/model_bundle.h"

namespace fovea {

// The computation of one row of an attention matrix.
struct RowExplanation {
  AttentionRow row;
  std::string mechanism = {};            // such as "global attention, score dot"; empty: multi-head
  std::vector<std::string> asking = {};  // pieces of the sentence with the queries
  std::vector<std::string> pieces = {};  // the pieces to which the row attends
  ComputationSteps steps = {};
};

// Returns the name of the model's attention mechanism, or "" for multi-head attention. Throws
// ExitCode::usage if the model has no attention.
std::string mechanism_of(const ModelConfig& config);

// Computes one row of attention with all steps. `source` and `target` are ids that end with </s>.
// If the model has no such attention, layer, head or row, throws ExitCode::usage.
RowExplanation explain_row(const ModelBundle& package, std::span<const int32_t> source,
                           std::span<const int32_t> target, const AttentionRow& row);

// Returns for each target word the word that the decoder reads to write it: the last piece of the
// frame, then all target words except the last.
std::vector<int32_t> read_before(std::span<const int32_t> target, const SentenceFrame& frame);

}  // namespace fovea
