#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

template <class T>
struct Labelled {
  Matrix<const T> logits;
  const int32_t* labels;  // one per row; a negative one leaves the row out
  double smoothing;
  int64_t words;  // on a GPU: the first columns alone are words, the others' gradients are 0
};

// losses[i] and log_likelihood[i] of every row.
template <class T>
void cross_entropy(Cpu, const Labelled<T>& in, T* losses, T* log_likelihood);
template <class T>
void cross_entropy(Cuda, const Labelled<T>& in, Wide<T>* losses, Wide<T>* log_likelihood);

// The same, and dlogits = scale[0] · (softmax − q); no scale means 1. Out may be bf16 for products
// that take it, which is always set.
template <class T, class Out>
void cross_entropy_grad(Cpu, const Labelled<T>& in, const T* scale, T* losses, T* log_likelihood,
                        Matrix<Out> dlogits, Fold fold);
template <class T, class Out>
void cross_entropy_grad(Cuda, const Labelled<T>& in, const Wide<T>* scale, Wide<T>* losses,
                        Wide<T>* log_likelihood, Matrix<Out> dlogits, Fold fold);

}  // namespace fovea::kernel
