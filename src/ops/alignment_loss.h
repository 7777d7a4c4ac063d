#pragma once

#include "ops/packing.h"

namespace fovea {

// The reference alignment of a packed batch (all sentences in one tensor). For each query it lists
// the keys of its sentence that the query should attend to, with equal weights. The loss omits
// queries without keys.
struct AlignmentTargets {
  Tensor offsets;  // i32 [queries + 1]: the links of query n are keys[offsets[n] … offsets[n + 1])
  Tensor keys;     // i32 [links]: positions of keys within the sentence, none twice per query
};

// The guided-alignment loss of one attention head: the cross entropy between the reference
// alignment and the attention weights, summed over the queries n that have links G_n:
//   −Σ_n 1/|G_n| Σ_{j∈G_n} log a_nj,  a = softmax(q kᵀ / √d_k)
// q [N, d_k] and k [M, d_k] are the columns of one head. The result is [1]. REQUIRES: every link of
// a query is the position of a key of the query's sentence.
// Chen et al.: Guided Alignment Training for Topic-Aware Neural Machine Translation, AMTA 2016,
// section 3; Garg et al.: Jointly Learning to Align and Translate with Transformer Models, EMNLP
// 2019, section 4.1.
Tensor guide_loss(const Tensor& q, const Tensor& k, const SentenceOffsets& queries,
                  const SentenceOffsets& keys, const AlignmentTargets& targets);

// The same loss, computed from plain operations one sentence after another: the reference for
// tests.
Tensor guide_loss_reference(const Tensor& q, const Tensor& k, const SentenceOffsets& queries,
                            const SentenceOffsets& keys, const AlignmentTargets& targets);

}  // namespace fovea
