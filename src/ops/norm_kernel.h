#pragma once

#include "ops/norm.h"
#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

// The kernels of layer norm and RMS norm. T is the type of f and of the tensors stored for the
// gradient. All other tensors have the type SumType<T>.
namespace fovea::kernel {

template <class T>
struct NormInput {
  Matrix<const SumType<T>> x;
  Matrix<const T> f;       // may be absent
  Dropout dropout;         // applied to f
  const SumType<T>*g, *b;  // for NormType::rms, b is absent
  double epsilon;
  NormType type;
};

template <class T>
struct NormOutput {
  Matrix<SumType<T>> y;
  Matrix<bf16> rounded;  // GPU only: receives a copy of y in bf16
  Matrix<T> normalised;
  SumType<T>* inverse_deviation;
};

// y = g n + b, n = (z − μ) / √(σ² + ε), z = x + dropout(f). For NormType::rms, μ = b = 0, so σ² is
// the mean of z². For the gradient, `normalised` receives n and `inverse_deviation` receives 1 /
// √(σ² + ε). All outputs except y may be absent.
template <class T>
void norm(Cpu, const NormInput<T>& in, const NormOutput<T>& out);
template <class T>
void norm(Cuda, const NormInput<T>& in, const NormOutput<T>& out);

// The arguments and results of norm_grad().
template <class T>
struct NormGrad {
  Matrix<const T> normalised;
  Matrix<const SumType<T>> dy;
  const SumType<T>*inverse_deviation, *g;
  Dropout dropout;
  Matrix<SumType<T>> dx;
  Matrix<T> df;
  SumType<T>*dg, *db;
  OutputMode fold_x, fold_f, fold_g, fold_b;
  NormType type;
};

// With d = g dy: dz = (d − mean(d) − n mean(d n)) / √(σ² + ε); for NormType::rms without mean(d).
// dx = dz and df = dropout(dz). dg_j = Σ_i n_ij dy_ij and db_j = Σ_i dy_ij, both in a fixed order.
// Each of dx, df, dg and db may be absent.
template <class T>
void norm_grad(Cpu, const NormGrad<T>& in);
template <class T>
void norm_grad(Cuda, const NormGrad<T>& in);

}  // namespace fovea::kernel
