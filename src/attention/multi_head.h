#pragma once

#include "nn/layers.h"
#include "ops/attention.h"

namespace fovea {

// Vaswani et al.: Attention Is All You Need, NIPS 2017, section 3.2.
//
//   MultiHead(Q, K, V) = Concat(head_1, …, head_h) W^O
//   head_i             = softmax(Q W_i^Q (K W_i^K)ᵀ / √d_k) V W_i^V
//
// Unlike the paper, every projection has a bias: Q W_i^Q + b_i^Q and so on.
//
// W_Q, W_K and W_V are the projections of all heads, stacked by rows, and W_QKV stacks these three
// matrices. So one product computes all projections of one input. W_Q is [heads · d_k, size], and
// W_O is [size, heads · d_k].
struct MultiHeadAttention {
  int64_t heads;
  double weight_dropout;
  Tensor W_Q, W_K, W_V, b_Q, b_K, b_V;
  Tensor W_QKV, W_KV, b_QKV, b_KV;  // the parameters above, stacked in the same memory
  Affine W_O;

  struct Shape {
    int64_t size, heads;
    double weight_dropout = 0;
    int64_t head_size = 0;  // d_k; 0: size / heads

    int64_t inner() const { return head_size > 0 ? heads * head_size : size; }
  };
  MultiHeadAttention(ParameterScope scope, const Shape& shape);

  // Self-attention: queries, keys and values from the same sentences. distance_scores: see
  // HeadsOptions.
  Tensor operator()(const Tensor& x, const SentenceOffsets& sentences, AttentionMask mask,
                    const Tensor& distance_scores = {}) const;

  // Cross-attention: queries from x, keys and values from a memory.
  Tensor operator()(const Tensor& x, const SentenceOffsets& queries, const Tensor& memory,
                    const SentenceOffsets& keys) const;

  // The projections of the two calls above, before they are rounded to the activation type. With A
  // = heads · d_k: Q, K and V [tokens, 3A]; Q [tokens, A]; K and V [tokens, 2A].
  Tensor project(const Tensor& x) const { return linear(x, W_QKV, b_QKV); }
  Tensor queries(const Tensor& x) const { return linear(x, W_Q, b_Q); }
  Tensor keys_and_values(const Tensor& memory) const { return linear(memory, W_KV, b_KV); }
};

}  // namespace fovea
