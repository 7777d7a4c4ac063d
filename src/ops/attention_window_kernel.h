#pragma once

#include "ops/dropout.h"
#include "ops/ragged_attention_kernel.h"
#include "tensor/device.h"
#include "tensor/matrix.h"

// The kernels of the functions that ops/attention_window.h describes. They work on each row
// separately.
namespace fovea::kernel {

// The range low[i] ≤ j < high[i] of columns j for each row i.
template <class Int>
struct RangeArrays {
  Int *low, *high;
};
using RangesIn = RangeArrays<const int32_t>;
using RangesOut = RangeArrays<int32_t>;

// low = 0; high = the number of words in the sentence of query i. If `reach` is not negative, high
// is at most `reach`.
void full_range(Cpu, const RaggedIndex& ragged, int64_t reach, RangesOut out);
void full_range(Cuda, const RaggedIndex& ragged, int64_t reach, RangesOut out);
template <class T>
void window_around(Cpu, Matrix<const T> p, int64_t D, RangesIn within, RangesOut out);
template <class T>
void window_around(Cuda, Matrix<const T> p, int64_t D, RangesIn within, RangesOut out);
void range_from(Cpu, const int32_t* from, int64_t rows, int64_t slack, RangesIn within,
                RangesOut out);
void range_from(Cuda, const int32_t* from, int64_t rows, int64_t slack, RangesIn within,
                RangesOut out);

template <class T>
void argmax(Cpu, Matrix<const T> x, RangesIn ranges, int32_t* at);
template <class T>
void argmax(Cuda, Matrix<const T> x, RangesIn ranges, int32_t* at);
template <class T>
void draw(Cpu, Matrix<const T> p, RangesIn ranges, const Dropout& key, int32_t* at);
template <class T>
void draw(Cuda, Matrix<const T> p, RangesIn ranges, const Dropout& key, int32_t* at);
template <class T>
void one_hot(Cpu, const int32_t* at, Matrix<T> y);
template <class T>
void one_hot(Cuda, const int32_t* at, Matrix<T> y);

template <class T>
void log_at(Cpu, Matrix<const T> p, const int32_t* at, T* y);
template <class T>
void log_at(Cuda, Matrix<const T> p, const int32_t* at, T* y);
// dp = dy / p at column at[i] of row i, 0 elsewhere.
template <class T>
void log_at_grad(Cpu, Matrix<const T> p, const int32_t* at, const T* dy, Matrix<T> dp,
                 OutputMode fold);
template <class T>
void log_at_grad(Cuda, Matrix<const T> p, const int32_t* at, const T* dy, Matrix<T> dp,
                 OutputMode fold);
template <class T>
void entropy(Cpu, Matrix<const T> p, T* y);
template <class T>
void entropy(Cuda, Matrix<const T> p, T* y);
// dp = −(log p + 1) dy, 0 where p is 0.
template <class T>
void entropy_grad(Cpu, Matrix<const T> p, const T* dy, Matrix<T> dp, OutputMode fold);
template <class T>
void entropy_grad(Cuda, Matrix<const T> p, const T* dy, Matrix<T> dp, OutputMode fold);

// Copies from[i, j] to to[i, j], or adds it for OutputMode::add, if j is below lengths[i] and both
// widths. For OutputMode::set all other entries become 0; for OutputMode::add they stay unchanged.
template <class T>
void copy_first(Cpu, Matrix<const T> from, const int32_t* lengths, Matrix<T> to, OutputMode fold);
template <class T>
void copy_first(Cuda, Matrix<const T> from, const int32_t* lengths, Matrix<T> to, OutputMode fold);

template <class T>
void gaussian(Cpu, const T* p, double sigma, Matrix<T> y);
template <class T>
void gaussian(Cuda, const T* p, double sigma, Matrix<T> y);
// dp = Σ_j dy_j y_j (j − p) / σ².
template <class T>
void gaussian_grad(Cpu, const T* p, double sigma, Matrix<const T> y, Matrix<const T> dy, T* dp,
                   OutputMode fold);
template <class T>
void gaussian_grad(Cuda, const T* p, double sigma, Matrix<const T> y, Matrix<const T> dy, T* dp,
                   OutputMode fold);

template <class T>
struct WindowMixture {
  Matrix<const T> alpha_hat, beta_hat, kappa;
  const int32_t* lengths;
};
template <class T>
void mixture(Cpu, const WindowMixture<T>& in, Matrix<T> phi);
template <class T>
void mixture(Cuda, const WindowMixture<T>& in, Matrix<T> phi);
// With g = exp(α̂ − exp(β̂) (κ − j)²): dα̂ = Σ_j dφ g, dβ̂ = −Σ_j dφ g exp(β̂) (κ − j)²,
// dκ = −2 Σ_j dφ g exp(β̂) (κ − j). All outputs are overwritten.
template <class T>
void mixture_grad(Cpu, const WindowMixture<T>& in, Matrix<const T> dphi, Matrix<T> dalpha_hat,
                  Matrix<T> dbeta_hat, Matrix<T> dkappa);
template <class T>
void mixture_grad(Cuda, const WindowMixture<T>& in, Matrix<const T> dphi, Matrix<T> dalpha_hat,
                  Matrix<T> dbeta_hat, Matrix<T> dkappa);

template <class T>
void uncovered(Cpu, Matrix<const T> covered, RangesIn ranges, Matrix<T> left);
template <class T>
void uncovered(Cuda, Matrix<const T> covered, RangesIn ranges, Matrix<T> left);
// dcovered = −dleft in the range where covered < 1, 0 elsewhere.
template <class T>
void uncovered_grad(Cpu, Matrix<const T> covered, RangesIn ranges, Matrix<const T> dleft,
                    Matrix<T> dcovered, OutputMode fold);
template <class T>
void uncovered_grad(Cuda, Matrix<const T> covered, RangesIn ranges, Matrix<const T> dleft,
                    Matrix<T> dcovered, OutputMode fold);
template <class T>
void softmax_uncovered(Cpu, Matrix<const T> e, Matrix<const T> left, RangesIn ranges, Matrix<T> y);
template <class T>
void softmax_uncovered(Cuda, Matrix<const T> e, Matrix<const T> left, RangesIn ranges, Matrix<T> y);
// With d = dy − ⟨y, dy⟩: de = y d, dleft = (y / left) d. If the data of an output is null, that
// output is not computed.
template <class T>
struct UncoveredGradients {
  Matrix<T> de, dleft;
  OutputMode fold_e, fold_left;
};
template <class T>
void softmax_uncovered_grad(Cpu, Matrix<const T> y, Matrix<const T> left, Matrix<const T> dy,
                            const UncoveredGradients<T>& out);
template <class T>
void softmax_uncovered_grad(Cuda, Matrix<const T> y, Matrix<const T> left, Matrix<const T> dy,
                            const UncoveredGradients<T>& out);

}  // namespace fovea::kernel
