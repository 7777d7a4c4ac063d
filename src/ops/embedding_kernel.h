#pragma once

#include "ops/dropout.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

// The fields of an Embedding (ops/embedding.h) as the kernels read them.
template <class T>
struct EmbeddingInput {
  const int32_t *ids, *places;
  Matrix<const T> E, P;  // P may be absent
  double scale;
  Dropout dropout;
};

// y receives the result of the lookup. `rounded`, if present (GPU only), receives a copy of y in
// bf16.
template <class T>
void embed(Cpu, const EmbeddingInput<T>& in, Matrix<T> y, Matrix<bf16> rounded = {});
template <class T>
void embed(Cuda, const EmbeddingInput<T>& in, Matrix<T> y, Matrix<bf16> rounded = {});

// dE[ids[i]] += scale · dropout(dy_i). The terms of each row of the table are added in the order of
// i.
template <class T>
void embed_grad(Cpu, const int32_t* ids, Matrix<const T> dy, double scale, const Dropout& dropout,
                Matrix<T> dE);
template <class T>
void embed_grad(Cuda, const int32_t* ids, Matrix<const T> dy, double scale, const Dropout& dropout,
                Matrix<T> dE);

}  // namespace fovea::kernel
