#include <algorithm>
#include <cmath>
#include <vector>

#include "gemm/gemm_kernel.h"
#include "ops/dropout_mask.h"
#include "ops/norm_kernel.h"

namespace fovea::kernel {

template <class T>
void norm(Cpu, const NormInput<T>& in, const NormOutput<T>& to) {
  const DropoutMask mask(in.dropout);
  const int64_t n = in.x.cols;
  const bool drops = in.f.data && in.dropout.on();
#pragma omp parallel if (in.x.size() > kWorthThreads)
  {
    std::vector<T> z(static_cast<size_t>(n)), keep(static_cast<size_t>(n), T{1});
#pragma omp for schedule(static)
    for (int64_t i = 0; i < in.x.rows; ++i) {
      const T* x = in.x.row(i);
      if (drops) dropout_row(mask, i, n, keep.data());
      if (in.f.data) {
        const T* f = in.f.row(i);
        for (int64_t j = 0; j < n; ++j) z[j] = x[j] + keep[j] * f[j];
      } else {
        std::copy_n(x, n, z.data());
      }
      T mean = 0, variance = 0;
      if (in.type == NormType::layer) {
#pragma omp simd reduction(+ : mean)
        for (int64_t j = 0; j < n; ++j) mean += z[j];
        mean /= static_cast<T>(n);
      }
#pragma omp simd reduction(+ : variance)
      for (int64_t j = 0; j < n; ++j) variance += (z[j] - mean) * (z[j] - mean);
      const T scale = 1 / std::sqrt(variance / static_cast<T>(n) + static_cast<T>(in.epsilon));
      T* out = to.y.row(i);
      for (int64_t j = 0; j < n; ++j) z[j] = (z[j] - mean) * scale;
      if (in.type == NormType::layer)
        for (int64_t j = 0; j < n; ++j) out[j] = in.g[j] * z[j] + in.b[j];
      else
        for (int64_t j = 0; j < n; ++j) out[j] = in.g[j] * z[j];
      if (to.normalised.data) std::copy_n(z.data(), n, to.normalised.row(i));
      if (to.inverse_deviation) to.inverse_deviation[i] = scale;
    }
  }
}

namespace {

template <class T>
void input_gradients(const NormGrad<T>& in) {
  const DropoutMask mask(in.dropout);
  const int64_t n = in.dy.cols;
#pragma omp parallel if (in.dy.size() > kWorthThreads)
  {
    std::vector<T> d(static_cast<size_t>(n)), keep(static_cast<size_t>(n), T{1});
#pragma omp for schedule(static)
    for (int64_t i = 0; i < in.dy.rows; ++i) {
      const T *dy = in.dy.row(i), *x = in.normalised.row(i);
      T mean = 0, along = 0;
#pragma omp simd reduction(+ : mean, along)
      for (int64_t j = 0; j < n; ++j) {
        d[j] = in.g[j] * dy[j];
        mean += d[j];
        along += d[j] * x[j];
      }
      mean = in.type == NormType::layer ? mean / static_cast<T>(n) : T{0};
      along /= static_cast<T>(n);
      const T scale = in.inverse_deviation[i];
      for (int64_t j = 0; j < n; ++j) d[j] = scale * (d[j] - mean - x[j] * along);
      const T *dz = d.data(), *kept = keep.data();
      if (in.dx.data) fold_row(in.dx.row(i), n, in.fold_x, [=](int64_t j) { return dz[j]; });
      if (in.df.data) {
        if (in.dropout.on()) dropout_row(mask, i, n, keep.data());
        fold_row(in.df.row(i), n, in.fold_f, [=](int64_t j) { return dz[j] * kept[j]; });
      }
    }
  }
}

template <class T>
void sum_gains(Matrix<const T> normalised, Matrix<const T> dy, T* dg, OutputMode fold) {
  constexpr int64_t kBlock = 256;  // rows per block, fixed so that the order of the sum is fixed
  const int64_t blocks = (dy.rows + kBlock - 1) / kBlock;
  std::vector<T> part(static_cast<size_t>(blocks * dy.cols), T{0});
#pragma omp parallel for schedule(static) if (dy.size() > kWorthThreads)
  for (int64_t b = 0; b < blocks; ++b) {
    T* to = part.data() + b * dy.cols;
    for (int64_t i = b * kBlock; i < std::min(dy.rows, (b + 1) * kBlock); ++i) {
      const T *x = normalised.row(i), *d = dy.row(i);
      for (int64_t j = 0; j < dy.cols; ++j) to[j] += x[j] * d[j];
    }
  }
  for (int64_t j = 0; j < dy.cols; ++j) {
    T sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += part[static_cast<size_t>(b * dy.cols + j)];
    fold_into(dg[j], fold, sum);
  }
}

}  // namespace

template <class T>
void norm_grad(Cpu on, const NormGrad<T>& in) {
  if (in.dg) sum_gains(in.normalised, in.dy, in.dg, in.fold_g);
  if (in.db) column_sums(on, in.dy, in.db, in.fold_b);
  if (in.dx.data || in.df.data) input_gradients(in);
}

#define FOVEA_INSTANTIATE(T)                                          \
  template void norm(Cpu, const NormInput<T>&, const NormOutput<T>&); \
  template void norm_grad(Cpu, const NormGrad<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
