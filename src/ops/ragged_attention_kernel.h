#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// The arrays of RaggedQueries as the kernels read them. Query i attends to the words of sentence b
// = sentence[i], which are the rows offsets[b] … offsets[b + 1] − 1.
struct RaggedIndex {
  const int32_t* offsets;
  const int32_t* sentence;
  int64_t sentences, queries;

  constexpr int64_t first(int64_t i) const { return offsets[sentence[i]]; }
  constexpr int64_t words(int64_t i) const { return offsets[sentence[i] + 1] - first(i); }
};

void lengths(Cpu, const RaggedIndex& ragged, int32_t* n);
void lengths(Cuda, const RaggedIndex& ragged, int32_t* n);
template <class T>
void lengths_as(Cpu, const RaggedIndex& ragged, int64_t most, T* n);
template <class T>
void lengths_as(Cuda, const RaggedIndex& ragged, int64_t most, T* n);

// Three products relate e, q and k; the gradients of each are the other two. If a column of e is
// beyond the end of the sentence, it is not read; with OutputMode::set it becomes 0. With
// OutputMode::set a word of k that no query attends to becomes 0, too.
//
// On a GPU the words k may be in bf16 (type K). `rounded`, if present, receives a copy of q in
// bf16.
//
// e_ij = q_i · k_j
template <class T>
void ragged_dot(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k, Matrix<T> e,
                OutputMode fold);
template <class T, class K>
void ragged_dot(Cuda, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k, Matrix<T> e,
                OutputMode fold);
// q_i = Σ_j e_ij k_j
template <class T>
void sum_over_words(Cpu, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const T> k,
                    Matrix<T> q, OutputMode fold, Matrix<bf16> rounded = {});
template <class T, class K>
void sum_over_words(Cuda, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const K> k,
                    Matrix<T> q, OutputMode fold, Matrix<bf16> rounded = {});
// k_j = Σ_i e_ij q_i, in the order of i
template <class T>
void sum_over_queries(Cpu, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const T> q,
                      Matrix<T> k, OutputMode fold);
template <class T>
void sum_over_queries(Cuda, const RaggedIndex& ragged, Matrix<const T> e, Matrix<const T> q,
                      Matrix<T> k, OutputMode fold);

// e_ij = v · tanh(q_i + k_j), and 0 beyond the end of a sentence.
template <class T>
void additive_scores(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k,
                     const T* v, Matrix<T> e);
template <class T, class K>
void additive_scores(Cuda, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k,
                     const T* v, Matrix<T> e);

// The results of the gradient of additive scores.
template <class T>
struct AdditiveGrad {
  Matrix<T> dq = {}, dk = {};  // if there is no data, dq or dk is not computed
  T* dv = nullptr;             // if null, dv is not computed
  OutputMode fold_q = OutputMode::set, fold_k = OutputMode::set, fold_v = OutputMode::set;
};
// With t = tanh(q_i + k_j) and g = de_ij v (1 − t²): dq_i = Σ_j g, dk_j = Σ_i g, dv = Σ_ij de_ij t.
template <class T>
void additive_scores_grad(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out);
template <class T, class K>
void additive_scores_grad(Cuda, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out);

// Whether the backward pass computes the gradient of the source words once, from the queries of all
// steps. On a GPU it does, because one call per step would read and write the gradients of all
// words each time.
constexpr bool defers_word_gradients(Cpu) { return false; }
constexpr bool defers_word_gradients(Cuda) { return true; }

// softmax over the columns [low[i], high[i]) of each row i; all other columns become 0.
template <class T>
void softmax_within(Cpu, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y);
template <class T>
void softmax_within(Cuda, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y);

}  // namespace fovea::kernel
