#pragma once

#include "ops/packing.h"

namespace fovea {

// Where the queries of a packed batch should look: for each a few keys of its own sentence, all
// alike, or none, which leaves the query out.
struct Guide {
  Tensor offsets;  // i32 [queries + 1]
  Tensor keys;     // i32 [links]: positions within the sentence, without repeats
};

// How far the attention of one head is from where it should be, summed over the queries n that
// have links G_n:
//   −Σ_n 1/|G_n| Σ_{j∈G_n} log a_nj,  a = softmax(q kᵀ / √d_k)
// q [N, d_k], k [M, d_k]: the columns of one head. The result is [1]. REQUIRES: every link is a
// key of the query's sentence.
// Chen et al.: Guided Alignment Training for Topic-Aware Neural Machine Translation, AMTA 2016,
// section 3; Garg et al.: Jointly Learning to Align and Translate with Transformer Models, EMNLP
// 2019, section 4.1.
Tensor guide_loss(const Tensor& q, const Tensor& k, const Packing& queries, const Packing& keys,
                  const Guide& guide);

// The same in plain operations, one sentence after the other.
Tensor guide_loss_reference(const Tensor& q, const Tensor& k, const Packing& queries,
                            const Packing& keys, const Guide& guide);

}  // namespace fovea
