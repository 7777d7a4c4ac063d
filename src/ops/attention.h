#pragma once

#include "ops/dropout.h"
#include "ops/packing.h"

namespace fovea {

enum class AttentionMask { none, causal };  // causal: no key has a later position than its query

// The options of attention.
struct HeadsOptions {
  int64_t heads = 1;
  AttentionMask mask = AttentionMask::none;
  Dropout dropout;  // applied to the weights
  // Relative positions: row c + j − i of a matrix [2c + 1, heads] is added to the scaled scores of
  // query i and key j. REQUIRES: it is absent, or sentences have at most c + 1 words.
  Tensor distance_scores = {};
};

// softmax(Q Kᵀ / √d_k) V for every head of every sentence of a packed batch (all sentences in one
// matrix). A query attends only to keys of its own sentence. Queries, keys and values are adjacent
// columns of one matrix, as the joint projections compute them: qkv [N, 3D], or q [N, D] and kv [M,
// 2D]. Head h uses the columns h·d_k … (h + 1)·d_k − 1 of Q, K and V. The result is [N, D].
Tensor self_attention(const Tensor& qkv, const SentenceOffsets& sentences,
                      const HeadsOptions& options);
Tensor cross_attention(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                       const SentenceOffsets& keys, const HeadsOptions& options);

// cross_attention() computed from plain operations, one sentence and head after another: the
// reference for tests.
Tensor cross_attention_reference(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                                 const SentenceOffsets& keys, const HeadsOptions& options);

// Return only the attention weights. The matrices [heads, queries, keys] of all sentences follow
// one another in one tensor.
Tensor self_attention_weights(const Tensor& qkv, const SentenceOffsets& sentences,
                              const HeadsOptions& options);
Tensor cross_attention_weights(const Tensor& q, const Tensor& kv, const SentenceOffsets& queries,
                               const SentenceOffsets& keys, const HeadsOptions& options);

// Cached keys and values, and the index of the rows that each query attends to. Row r of q [R, D]
// attends to the rows index[r, 0 … lengths[r]) of kv [capacity, 2D]. The position of its query is
// that of the last of them, if there are distance scores. Used for decoding on the CPU; there is no
// gradient.
struct CachedRows {
  Tensor kv;       // [capacity, 2D]
  Tensor index;    // i32 [R, width]
  Tensor lengths;  // i32 [R]
};
Tensor attend_remembered(const Tensor& q, const CachedRows& memory, int64_t heads,
                         const Tensor& distance_scores = {});

}  // namespace fovea
