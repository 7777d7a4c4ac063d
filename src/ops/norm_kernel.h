#pragma once

#include "ops/dropout.h"
#include "tensor/device.h"
#include "tensor/matrix.h"

namespace fovea::kernel {

template <class T>
struct Norm {
  Matrix<const T> x, f;  // f may be absent
  Dropout dropout;       // of f
  const T *g, *b;
  double epsilon;
};

// y = g n + b, n = (z − μ) / √(σ² + ε), z = x + dropout(f). `normalised` receives n and
// `inverse_deviation` 1 / √(σ² + ε) for the gradient; both may be absent.
template <class T>
void norm(Cpu, const Norm<T>& in, Matrix<T> y, Matrix<T> normalised, T* inverse_deviation);
template <class T>
void norm(Cuda, const Norm<T>& in, Matrix<T> y, Matrix<T> normalised, T* inverse_deviation);

template <class T>
struct NormGrad {
  Matrix<const T> normalised, dy;
  const T *inverse_deviation, *g;
  Dropout dropout;
  Matrix<T> dx, df;  // either may be absent
  Fold fold_x = Fold::set, fold_f = Fold::set;
};

// dz = (d − mean(d) − n mean(d n)) / √(σ² + ε) with d = g dy; dx = dz, df = dropout(dz).
template <class T>
void norm_grad(Cpu, const NormGrad<T>& in);
template <class T>
void norm_grad(Cuda, const NormGrad<T>& in);

// dg_j = Σ_i n_ij dy_ij, in a fixed order.
template <class T>
void norm_gain_grad(Cpu, Matrix<const T> normalised, Matrix<const T> dy, T* dg, Fold fold);
template <class T>
void norm_gain_grad(Cuda, Matrix<const T> normalised, Matrix<const T> dy, T* dg, Fold fold);

}  // namespace fovea::kernel
