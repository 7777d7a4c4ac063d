#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// The arguments of cross_entropy().
template <class T>
struct LabelledLogits {
  Matrix<const T> logits;
  const int32_t* labels;  // one per row; a row with a negative label is omitted
  double smoothing;
  int64_t words;  // number of logits per row; on a GPU later columns are padding
};

// Computes losses[i] and log_likelihood[i] for every row i.
template <class T>
void cross_entropy(Cpu, const LabelledLogits<T>& in, T* losses, T* log_likelihood);
template <class T>
void cross_entropy(Cuda, const LabelledLogits<T>& in, SumType<T>* losses,
                   SumType<T>* log_likelihood);

// Like cross_entropy(). Also computes dlogits = scale[0] · (softmax − q). If `scale` is null,
// scale[0] counts as 1. If Out is bf16, `fold` must be OutputMode::set.
template <class T, class Out>
void cross_entropy_grad(Cpu, const LabelledLogits<T>& in, const T* scale, T* losses,
                        T* log_likelihood, Matrix<Out> dlogits, OutputMode fold);
template <class T, class Out>
void cross_entropy_grad(Cuda, const LabelledLogits<T>& in, const SumType<T>* scale,
                        SumType<T>* losses, SumType<T>* log_likelihood, Matrix<Out> dlogits,
                        OutputMode fold);

}  // namespace fovea::kernel
