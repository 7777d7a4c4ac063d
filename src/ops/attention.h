#pragma once

#include "ops/dropout.h"
#include "ops/packing.h"

namespace fovea {

enum class Look { everywhere, back };  // back: no position after the query's own

struct HeadsOptions {
  int64_t heads = 1;
  Look look = Look::everywhere;
  Dropout dropout;  // of the weights
};

// softmax(Q Kᵀ / √d_k) V for every head of every sentence of a packed batch; no weight falls
// outside the sentence. Queries, keys and values stand side by side in columns, as the joint
// projections leave them: qkv [N, 3D], or q [N, D] and kv [M, 2D]. Head h takes columns
// h·d_k … (h+1)·d_k of each. The result is [N, D].
Tensor self_attention(const Tensor& qkv, const Packing& sentences, const HeadsOptions& options);
Tensor cross_attention(const Tensor& q, const Tensor& kv, const Packing& queries,
                       const Packing& keys, const HeadsOptions& options);

// The same in plain operations, one sentence and head after the other.
Tensor cross_attention_reference(const Tensor& q, const Tensor& kv, const Packing& queries,
                                 const Packing& keys, const HeadsOptions& options);

// The weights alone: for each sentence [heads, queries, keys], one after another.
Tensor self_attention_weights(const Tensor& qkv, const Packing& sentences,
                              const HeadsOptions& options);
Tensor cross_attention_weights(const Tensor& q, const Tensor& kv, const Packing& queries,
                               const Packing& keys, const HeadsOptions& options);

// One query per row over remembered keys and values: row r of q [R, D] attends to the rows
// index[r, 0 … lengths[r]) of kv [capacity, 2D]. No gradient: this is for decoding on the CPU.
struct Remembered {
  Tensor kv;       // [capacity, 2D]
  Tensor index;    // i32 [R, width]
  Tensor lengths;  // i32 [R]
};
Tensor attend_remembered(const Tensor& q, const Remembered& memory, int64_t heads);

}  // namespace fovea
