#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

enum class Transposition { as_is, transposed };

// A matrix product c = op(a) op(b) + bias, or added to c. `bias` has one element per column of c,
// or no data. A row of the product does not depend on the number of threads. With tiles or oneDNN's
// AVX-512 kernels it does not depend on the other rows of a, either (docs/design.md,
// "Determinism").
template <class T, class In>
struct GemmCall {
  Matrix<const In> a;
  Transposition a_side = Transposition::as_is;
  Matrix<const In> b;
  Transposition b_side = Transposition::as_is;
  Matrix<T> c;
  const T* bias = nullptr;
  OutputMode fold = OutputMode::set;
  // The product is added to this instead of c. REQUIRES on a GPU: OutputMode::add.
  const T* onto = nullptr;
  // b stays the same over many calls (until forget_packed()). A packed copy of b is stored in the
  // layout that the inner loops read fastest.
  bool keep_b = false;
  std::shared_ptr<void>* home = nullptr;  // stores the copy permanently; then b may have no data
  // Computes max(0, c). REQUIRES on a GPU: c is bf16 and set, with a bias and whole packs.
  bool relu = false;
};

void matmul(Cpu, const GemmCall<double, double>& p);
void matmul(Cpu, const GemmCall<float, float>& p);
void matmul(Cpu, const GemmCall<float, bf16>& p);
void matmul(Cuda on, const GemmCall<float, float>& p);
void matmul(Cuda on, const GemmCall<float, bf16>& p);
void matmul(Cuda on, const GemmCall<bf16, bf16>& p);
void forget_packed(Cpu);
void forget_packed(Cuda);

// y = s_row s_col (q_x · q_W) + bias. x is quantised to 8 bits row by row, and so is W [out, in].
// The 8-bit copy of W is stored until forget_packed(). Only for CPUs: GPUs have bf16 products.
void matmul_int8(Cpu, Matrix<const float> x, Matrix<const float> W, const float* bias,
                 Matrix<float> y);

bool has_fast_bf16(Cpu);  // whether bf16 products are faster than float products
bool has_fast_bf16(Cuda);

void cast(Cpu, Matrix<const float> x, Matrix<bf16> y);  // to nearest, ties to even
void cast(Cuda on, Matrix<const float> x, Matrix<bf16> y);

// sums[j] = Σ_i x_ij, in a fixed order.
void column_sums(Cpu, Matrix<const float> x, float* sums, OutputMode fold);
void column_sums(Cpu, Matrix<const bf16> x, float* sums, OutputMode fold);
void column_sums(Cpu, Matrix<const double> x, double* sums, OutputMode fold);
void column_sums(Cuda on, Matrix<const float> x, float* sums, OutputMode fold);
void column_sums(Cuda on, Matrix<const bf16> x, float* sums, OutputMode fold);

// Limits the number of products of different sizes that oneDNN keeps ready. The default is 4,096
// per thread. Each takes about 64 KiB, and creating one again takes 0.2 ms.
void keep_products(int most);

}  // namespace fovea::kernel
