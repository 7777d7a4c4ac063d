#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

enum class Side { as_is, transposed };

// c = op(a) op(b) + bias, or added to c. `bias` has one entry per column of c, or no data.
// A row of the product does not depend on the number of threads, and not on the other rows of a
// either in tiles or where oneDNN has AVX-512 kernels (docs/design.md, "Determinism").
template <class T, class In>
struct Product {
  Matrix<const In> a;
  Side a_side = Side::as_is;
  Matrix<const In> b;
  Side b_side = Side::as_is;
  Matrix<T> c;
  const T* bias = nullptr;
  Fold fold = Fold::set;
  const T* onto = nullptr;  // what it is added to instead of c. REQUIRES: on a GPU, Fold::add
  // b stays the same over many calls (until forget_packed()): it is kept in the order that the
  // inner loops like best.
  bool keep_b = false;
  std::shared_ptr<void>* home = nullptr;  // where it is kept for good; then b may have no data
  // max(0, c) instead of c. REQUIRES: on a GPU, c is bf16 and set, with a bias and whole packs.
  bool relu = false;
};

void matmul(Cpu, const Product<double, double>& p);
void matmul(Cpu, const Product<float, float>& p);
void matmul(Cpu, const Product<float, bf16>& p);
void matmul(Cuda on, const Product<float, float>& p);
void matmul(Cuda on, const Product<float, bf16>& p);
void matmul(Cuda on, const Product<bf16, bf16>& p);
void forget_packed(Cpu);
void forget_packed(Cuda);

// y = s_row s_col (q_x · q_W) + bias with x quantised row by row to 8 bits, W [out, in] per row.
// W in 8 bits is kept until forget_packed(). For processors alone: GPUs have bf16 products.
void matmul_int8(Cpu, Matrix<const float> x, Matrix<const float> W, const float* bias,
                 Matrix<float> y);

bool has_fast_bf16(Cpu);  // whether products of bf16 are faster than those of float here
bool has_fast_bf16(Cuda);

void cast(Cpu, Matrix<const float> x, Matrix<bf16> y);  // to nearest, ties to even
void cast(Cuda on, Matrix<const float> x, Matrix<bf16> y);

// sums[j] = Σ_i x_ij, in a fixed order.
void column_sums(Cpu, Matrix<const float> x, float* sums, Fold fold);
void column_sums(Cpu, Matrix<const bf16> x, float* sums, Fold fold);
void column_sums(Cpu, Matrix<const double> x, double* sums, Fold fold);
void column_sums(Cuda on, Matrix<const float> x, float* sums, Fold fold);
void column_sums(Cuda on, Matrix<const bf16> x, float* sums, Fold fold);

// How many products of different sizes the processor's library keeps ready: 4,096 for each thread
// unless told, each of which takes some 64 KiB; one that is made anew costs 0.2 ms.
void keep_products(int most);

}  // namespace fovea::kernel
