#pragma once

#include "ops/dropout.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

// T is the type of f and of what is kept for the gradient; everything else is Wide<T>.
namespace fovea::kernel {

template <class T>
struct Norm {
  Matrix<const Wide<T>> x;
  Matrix<const T> f;  // may be absent
  Dropout dropout;    // of f
  const Wide<T>*g, *b;
  double epsilon;
};

template <class T>
struct Normed {
  Matrix<Wide<T>> y;
  Matrix<bf16> rounded;  // on a GPU: y once more
  Matrix<T> normalised;
  Wide<T>* inverse_deviation;
};

// y = g n + b, n = (z − μ) / √(σ² + ε), z = x + dropout(f). `normalised` receives n and
// `inverse_deviation` 1 / √(σ² + ε) for the gradient; all but y may be absent.
template <class T>
void norm(Cpu, const Norm<T>& in, const Normed<T>& out);
template <class T>
void norm(Cuda, const Norm<T>& in, const Normed<T>& out);

template <class T>
struct NormGrad {
  Matrix<const T> normalised;
  Matrix<const Wide<T>> dy;
  const Wide<T>*inverse_deviation, *g;
  Dropout dropout;
  Matrix<Wide<T>> dx;
  Matrix<T> df;
  Wide<T>*dg, *db;
  Fold fold_x, fold_f, fold_g, fold_b;
};

// dz = (d − mean(d) − n mean(d n)) / √(σ² + ε) with d = g dy; dx = dz, df = dropout(dz),
// dg_j = Σ_i n_ij dy_ij and db_j = Σ_i dy_ij in a fixed order. Each of the four may be absent.
template <class T>
void norm_grad(Cpu, const NormGrad<T>& in);
template <class T>
void norm_grad(Cuda, const NormGrad<T>& in);

}  // namespace fovea::kernel
