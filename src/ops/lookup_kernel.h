#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// Query i looks at the words offsets[b] … offsets[b + 1] of sentence b = sentence[i].
struct Looking {
  const int32_t* offsets;
  const int32_t* sentence;
  int64_t sentences, queries;

  constexpr int64_t first(int64_t i) const { return offsets[sentence[i]]; }
  constexpr int64_t words(int64_t i) const { return offsets[sentence[i] + 1] - first(i); }
};

void lengths(Cpu, const Looking& look, int32_t* n);
void lengths(Cuda, const Looking& look, int32_t* n);
template <class T>
void lengths_as(Cpu, const Looking& look, int64_t most, T* n);
template <class T>
void lengths_as(Cuda, const Looking& look, int64_t most, T* n);

// Three products, each the gradient of the two others. Columns of e beyond a sentence's end are
// not read; when e is set they become 0. Words that nobody looks at get 0 when k is set.
//
// On a GPU words k may be read in bf16 (K), and what is blended may be wanted in bf16 as well.
//
// e_ij = q_i · k_j
template <class T>
void look_dot(Cpu, const Looking& look, Matrix<const T> q, Matrix<const T> k, Matrix<T> e,
              Fold fold);
template <class T, class K>
void look_dot(Cuda, const Looking& look, Matrix<const T> q, Matrix<const K> k, Matrix<T> e,
              Fold fold);
// q_i = Σ_j e_ij k_j
template <class T>
void look_blend(Cpu, const Looking& look, Matrix<const T> e, Matrix<const T> k, Matrix<T> q,
                Fold fold, Matrix<bf16> rounded = {});
template <class T, class K>
void look_blend(Cuda, const Looking& look, Matrix<const T> e, Matrix<const K> k, Matrix<T> q,
                Fold fold, Matrix<bf16> rounded = {});
// k_j = Σ_i e_ij q_i, in the order of i
template <class T>
void look_spread(Cpu, const Looking& look, Matrix<const T> e, Matrix<const T> q, Matrix<T> k,
                 Fold fold);
template <class T>
void look_spread(Cuda, const Looking& look, Matrix<const T> e, Matrix<const T> q, Matrix<T> k,
                 Fold fold);

// e_ij = v · tanh(q_i + k_j), 0 beyond a sentence's end.
template <class T>
void additive_scores(Cpu, const Looking& look, Matrix<const T> q, Matrix<const T> k, const T* v,
                     Matrix<T> e);
template <class T, class K>
void additive_scores(Cuda, const Looking& look, Matrix<const T> q, Matrix<const K> k, const T* v,
                     Matrix<T> e);

template <class T>
struct AdditiveGrad {
  Matrix<T> dq = {}, dk = {};  // no data: not wanted
  T* dv = nullptr;             // null: not wanted
  Fold fold_q = Fold::set, fold_k = Fold::set, fold_v = Fold::set;
};
// With t = tanh(q_i + k_j) and g = de_ij v (1 − t²): dq_i = Σ_j g, dk_j = Σ_i g, dv = Σ_ij de_ij t.
template <class T>
void additive_scores_grad(Cpu, const Looking& look, Matrix<const T> q, Matrix<const T> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out);
template <class T, class K>
void additive_scores_grad(Cuda, const Looking& look, Matrix<const T> q, Matrix<const K> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out);

// Whether words that queries look at again and again get their gradient once, of all these queries:
// on a GPU one call for each step would read and write the gradients of all words each time.
constexpr bool gathers_late(Cpu) { return false; }
constexpr bool gathers_late(Cuda) { return true; }

// softmax over columns low[i] … high[i] of row i, 0 elsewhere.
template <class T>
void softmax_within(Cpu, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y);
template <class T>
void softmax_within(Cuda, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y);

}  // namespace fovea::kernel
