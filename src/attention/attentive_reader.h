#pragma once

#include <numeric>
#include <vector>

#include "nn/params.h"
#include "ops/attention_window.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"

namespace fovea {

// The attention of the Attentive Reader (Hermann et al.: Teaching Machines to Read and Comprehend,
// NIPS 2015, section 3.2): one encoded question u attends once to all words of a document y.
struct ReaderAttention {
  Tensor W_ym, W_um, w_ms;  // [A, D], [A, U], [A]
  Tensor W_rg, W_ug;        // [G, D], [G, U]

  struct Sizes {
    int64_t document, question, inner, result;
  };
  ReaderAttention(ParameterScope scope, const Sizes& n)
      : W_ym(scope.declare("W_ym", {n.inner, n.document},
                           ParameterInit::glorot(n.document, n.inner))),
        W_um(scope.declare("W_um", {n.inner, n.question},
                           ParameterInit::glorot(n.question, n.inner))),
        w_ms(scope.declare("w_ms", {n.inner}, ParameterInit::glorot(n.inner, 1))),
        W_rg(scope.declare("W_rg", {n.result, n.document},
                           ParameterInit::glorot(n.document, n.result))),
        W_ug(scope.declare("W_ug", {n.result, n.question},
                           ParameterInit::glorot(n.question, n.result))) {}

  struct Read {
    Tensor g;        // [documents, G]: joint embedding of document and question
    Tensor r;        // [documents, D]: weighted sum of the document's states
    Tensor weights;  // [documents, longest], 0 beyond the end of a document
    Tensor scores;   // same shape as weights
  };

  // h [words, D] holds the states of the words of all documents, u [documents, U] one question per
  // document.
  Read operator()(const Tensor& h, const SentenceOffsets& documents, const Tensor& u) const {
    std::vector<int32_t> document(static_cast<size_t>(documents.sentences));  // of query i: i
    std::iota(document.begin(), document.end(), 0);
    const RaggedQueries look{documents, Tensor::of(document, h.device())};
    const Tensor q = linear(u, W_um), keys = linear(h, W_ym);
    const Tensor e =
        additive_scores(q, keys, w_ms, look);  // w_msᵀ m_j, m_j = tanh(W_ym h_j + W_um u)
    const Tensor alpha = softmax_within(e, full_range(look));  // α ∝ exp(w_msᵀ m_j)
    const Tensor r = weighted_sum(alpha, h, look);             // r = Σ_j α_j h_j
    const Tensor g = tanh(linear(r, W_rg) + linear(u, W_ug));  // g = tanh(W_rg r + W_ug u)
    return {g, r, alpha, e};
  }
};

}  // namespace fovea
