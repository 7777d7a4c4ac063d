#include "attention/multi_head.h"

namespace fovea {
namespace {

// Declares a projection [inner, size]. Its initial values have the range for one matrix [3 inner,
// size], as in the published systems. The range for a matrix [inner, size] is larger, and post-norm
// models learn far more slowly from such values.
Tensor projection(ParameterScope scope, const char* name, const MultiHeadAttention::Shape& shape) {
  return scope.declare(name, {shape.inner(), shape.size},
                       ParameterInit::glorot(shape.size, 3 * shape.inner()));
}
Tensor bias(ParameterScope scope, const char* name, int64_t size) {
  return scope.declare(name, {size}, ParameterInit::constant(0));
}

}  // namespace

// The members are declared in the order in which the store keeps the parameters.
MultiHeadAttention::MultiHeadAttention(ParameterScope scope, const Shape& shape)
    : heads(shape.heads), weight_dropout(shape.weight_dropout),
      W_Q(projection(scope, "W_Q", shape)), W_K(projection(scope, "W_K", shape)),
      W_V(projection(scope, "W_V", shape)), b_Q(bias(scope, "b_Q", shape.inner())),
      b_K(bias(scope, "b_K", shape.inner())), b_V(bias(scope, "b_V", shape.inner())),
      W_QKV(scope.store.stack({W_Q, W_K, W_V})), W_KV(scope.store.stack({W_K, W_V})),
      b_QKV(scope.store.stack({b_Q, b_K, b_V})), b_KV(scope.store.stack({b_K, b_V})),
      W_O(scope / "W_O", shape.inner(), shape.size) {}

Tensor MultiHeadAttention::operator()(const Tensor& x, const SentenceOffsets& sentences,
                                      AttentionMask mask, const Tensor& distance_scores) const {
  const HeadsOptions options{heads, mask, dropout_key(weight_dropout), distance_scores};
  const Tensor qkv = linear(x, W_QKV, b_QKV, OutputType::activation);
  return W_O(self_attention(qkv, sentences, options));
}

Tensor MultiHeadAttention::operator()(const Tensor& x, const SentenceOffsets& queries_at,
                                      const Tensor& memory, const SentenceOffsets& keys_at) const {
  const HeadsOptions options{heads, AttentionMask::none, dropout_key(weight_dropout)};
  const Tensor q = linear(x, W_Q, b_Q, OutputType::activation);
  const Tensor kv = linear(memory, W_KV, b_KV, OutputType::activation);
  return W_O(cross_attention(q, kv, queries_at, keys_at, options));
}

}  // namespace fovea
