#pragma once

#include <span>
#include <vector>

#include "decode/word_intervention.h"
#include "models/explainable.h"

namespace fovea {

// The pieces of a sentence pair, without its frame and without </s>.
struct TextPair {
  std::span<const int32_t> source, target;
};

// All attention matrices of each pair under forced decoding. Their rows and columns are those of
// the pieces and of </s>, without the other pieces of the frame; </s> has weights of 0 if the
// model does not read it. ExitCode::usage if the model is not Attentive.
std::vector<std::vector<AttentionMap>> attention_of(const Model& model,
                                                    std::span<const TextPair> pairs);

// An intervention on a source of `pieces` pieces with </s>, in the positions of its framed
// sentence. ExitCode::usage if it names </s>, and the model does not read it.
WhatIf in_frame(const WhatIf& what_if, int64_t pieces, const SentenceFrame& frame);

}  // namespace fovea
