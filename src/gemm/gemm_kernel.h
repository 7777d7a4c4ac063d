#pragma once

#include "tensor/device.h"
#include "tensor/matrix.h"
#include "tensor/tensor.h"

namespace fovea::kernel {

enum class Transposition { as_is, transposed };

// A matrix product c = op(a) op(b) + bias for OutputMode::set, or c += op(a) op(b) + bias for
// OutputMode::add. `bias` has one element per column of c, or is null. A row of the result does not
// depend on the number of threads. If the processor has AMX tiles, or oneDNN uses AVX-512, the row
// does not depend on the other rows of a, either (docs/design.md, "Determinism").
template <class T, class In>
struct GemmCall {
  Matrix<const In> a;
  Transposition a_side = Transposition::as_is;
  Matrix<const In> b;
  Transposition b_side = Transposition::as_is;
  Matrix<T> c;
  const T* bias = nullptr;
  OutputMode fold = OutputMode::set;
  // If not null, c = op(a) op(b) + onto, and the old c is not read. REQUIRES on a GPU:
  // OutputMode::add.
  const T* onto = nullptr;
  // True: b stays the same over many calls, until forget_packed(). Then the product stores a packed
  // copy of b, in the layout that the inner loops read fastest.
  bool keep_b = false;
  std::shared_ptr<void>* home = nullptr;  // holds the copy permanently; b may then be empty
  // True: stores max(0, result). REQUIRES on a GPU: T is bf16, fold is OutputMode::set, c.cols is a
  // multiple of 8, and there is a bias that begins at a multiple of 16 bytes.
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

// y = x Wᵀ + bias with 8-bit operands, see Note [Eight bits]. Each row of x and of W [out, in] is
// rounded to 8-bit integers with a scale of its own. The 8-bit copy of W is stored until
// forget_packed(). It exists only for CPUs, because GPUs have bf16 products.
void matmul_int8(Cpu, Matrix<const float> x, Matrix<const float> W, const float* bias,
                 Matrix<float> y);

bool has_fast_bf16(Cpu);  // whether bf16 products are faster than float products here
bool has_fast_bf16(Cuda);

void cast(Cpu, Matrix<const float> x, Matrix<bf16> y);  // rounds to nearest, ties to even
void cast(Cuda on, Matrix<const float> x, Matrix<bf16> y);

// sums[j] = Σ_i x_ij, or += for OutputMode::add, added in a fixed order.
void column_sums(Cpu, Matrix<const float> x, float* sums, OutputMode fold);
void column_sums(Cpu, Matrix<const bf16> x, float* sums, OutputMode fold);
void column_sums(Cpu, Matrix<const double> x, double* sums, OutputMode fold);
void column_sums(Cuda on, Matrix<const float> x, float* sums, OutputMode fold);
void column_sums(Cuda on, Matrix<const bf16> x, float* sums, OutputMode fold);

// Limits the number of compiled products that each thread keeps; there is one per shape. The
// default is 4,096 per thread. Each takes about 64 KiB. Creating one again takes 0.2 ms.
void keep_products(int most);

}  // namespace fovea::kernel
