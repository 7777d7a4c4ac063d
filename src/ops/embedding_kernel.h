#pragma once

#include "ops/dropout.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

template <class T>
struct Lookup {
  const int32_t *ids, *places;
  Matrix<const T> E, P;  // P may be absent
  double scale;
  Dropout dropout;
};

// `rounded` is for GPUs: y once more, or absent.
template <class T>
void embed(Cpu, const Lookup<T>& in, Matrix<T> y, Matrix<bf16> rounded = {});
template <class T>
void embed(Cuda, const Lookup<T>& in, Matrix<T> y, Matrix<bf16> rounded = {});

// dE[ids[i]] += scale · dropout(dy_i), for each row of the table in the order of i.
template <class T>
void embed_grad(Cpu, const int32_t* ids, Matrix<const T> dy, double scale, const Dropout& dropout,
                Matrix<T> dE);
template <class T>
void embed_grad(Cuda, const int32_t* ids, Matrix<const T> dy, double scale, const Dropout& dropout,
                Matrix<T> dE);

}  // namespace fovea::kernel
