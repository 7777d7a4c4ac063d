#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

template <class T>
struct LabelledLogits {
  Matrix<const T> logits;
  const int32_t* labels;  // one per row; a row with a negative label is omitted
  double smoothing;
  int64_t words;  // GPU only: words have the first columns; all other gradients are 0
};

// losses[i] and log_likelihood[i] of every row.
template <class T>
void cross_entropy(Cpu, const LabelledLogits<T>& in, T* losses, T* log_likelihood);
template <class T>
void cross_entropy(Cuda, const LabelledLogits<T>& in, SumType<T>* losses,
                   SumType<T>* log_likelihood);

// The same, and dlogits = scale[0] · (softmax − q); without `scale` the factor is 1. Out may be
// bf16, for products in bf16; then `fold` must be OutputMode::set.
template <class T, class Out>
void cross_entropy_grad(Cpu, const LabelledLogits<T>& in, const T* scale, T* losses,
                        T* log_likelihood, Matrix<Out> dlogits, OutputMode fold);
template <class T, class Out>
void cross_entropy_grad(Cuda, const LabelledLogits<T>& in, const SumType<T>* scale,
                        SumType<T>* losses, SumType<T>* log_likelihood, Matrix<Out> dlogits,
                        OutputMode fold);

}  // namespace fovea::kernel
