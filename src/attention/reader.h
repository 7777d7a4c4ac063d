#pragma once

#include <numeric>
#include <vector>

#include "nn/params.h"
#include "ops/elementwise.h"
#include "ops/focus.h"
#include "ops/matmul.h"

namespace fovea {

// Hermann et al.: Teaching Machines to Read and Comprehend, NIPS 2015, section 3.2, "The Attentive
// Reader": one question u asks a whole document y once.
struct ReaderAttention {
  Tensor W_ym, W_um, w_ms;  // [A, D], [A, U], [A]
  Tensor W_rg, W_ug;        // [G, D], [G, U]

  struct Sizes {
    int64_t document, question, inner, result;
  };
  ReaderAttention(Scope scope, const Sizes& n)
      : W_ym(scope.declare("W_ym", {n.inner, n.document}, Init::glorot(n.document, n.inner))),
        W_um(scope.declare("W_um", {n.inner, n.question}, Init::glorot(n.question, n.inner))),
        w_ms(scope.declare("w_ms", {n.inner}, Init::glorot(n.inner, 1))),
        W_rg(scope.declare("W_rg", {n.result, n.document}, Init::glorot(n.document, n.result))),
        W_ug(scope.declare("W_ug", {n.result, n.question}, Init::glorot(n.question, n.result))) {}

  struct Read {
    Tensor g;        // [documents, G]: document and question together
    Tensor r;        // [documents, D]: what was read
    Tensor weights;  // [documents, longest], 0 beyond a document's end
    Tensor scores;   // the same shape
  };

  // h [words, D] are the states of all documents, u [documents, U] their questions.
  Read operator()(const Tensor& h, const Packing& documents, const Tensor& u) const {
    std::vector<int32_t> each(static_cast<size_t>(documents.sentences));
    std::iota(each.begin(), each.end(), 0);
    const Lookup look{documents, Tensor::of(each, h.device())};
    const Tensor q = linear(u, W_um), keys = linear(h, W_ym);
    const Tensor e =
        additive_scores(q, keys, w_ms, look);  // w_msᵀ m_j, m_j = tanh(W_ym h_j + W_um u)
    const Tensor alpha = softmax_within(e, whole(look));       // α ∝ exp(w_msᵀ m_j)
    const Tensor r = weighted_sum(alpha, h, look);             // r = Σ_j α_j h_j
    const Tensor g = tanh(linear(r, W_rg) + linear(u, W_ug));  // g = tanh(W_rg r + W_ug u)
    return {g, r, alpha, e};
  }
};

}  // namespace fovea
