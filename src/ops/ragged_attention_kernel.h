#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// The kernels' view of RaggedQueries: query i attends to the words offsets[b] … offsets[b + 1] − 1,
// which are those of sentence b = sentence[i].
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

// Three products; each computes the gradients of the other two. Columns of e beyond the end of a
// sentence are not read. With OutputMode::set, such columns of e become 0, and so do words of k
// that no query attends to.
//
// On a GPU the words k may be in bf16 (K), and `rounded`, if present, receives a bf16 copy of q.
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
  Matrix<T> dq = {}, dk = {};  // no data: not computed
  T* dv = nullptr;             // null: not computed
  OutputMode fold_q = OutputMode::set, fold_k = OutputMode::set, fold_v = OutputMode::set;
};
// With t = tanh(q_i + k_j) and g = de_ij v (1 − t²): dq_i = Σ_j g, dk_j = Σ_i g, dv = Σ_ij de_ij t.
template <class T>
void additive_scores_grad(Cpu, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const T> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out);
template <class T, class K>
void additive_scores_grad(Cuda, const RaggedIndex& ragged, Matrix<const T> q, Matrix<const K> k,
                          const T* v, Matrix<const T> de, const AdditiveGrad<T>& out);

// Whether the gradient of the source words is computed once from the queries of all steps. On a
// GPU, a call per step would read and write the gradients of all words each time.
constexpr bool defers_word_gradients(Cpu) { return false; }
constexpr bool defers_word_gradients(Cuda) { return true; }

// softmax over the columns [low[i], high[i]) of row i; 0 elsewhere.
template <class T>
void softmax_within(Cpu, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y);
template <class T>
void softmax_within(Cuda, Matrix<const T> e, const int32_t* low, const int32_t* high, Matrix<T> y);

}  // namespace fovea::kernel
