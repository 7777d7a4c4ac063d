#include <cublasLt.h>

#include <array>
#include <compare>
#include <map>

#include "base/check.h"
#include "gemm/gemm_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;
constexpr int kThreads = 256;

void check_cublas(cublasStatus_t result, const char* what) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  if (memory) cudaGetLastError();  // otherwise the next launch would report this error again
  fail(memory ? ExitCode::memory : ExitCode::unexpected, "cuBLASLt: ", what, ": ",
       cublasLtGetStatusString(result), memory ? "; " : "", memory ? kNeedsLess : "");
}

// The properties of a product by which cuBLASLt's algorithm is chosen. Alignments are in bytes, at
// most 256.
struct ProductShape {
  int64_t rows, cols, depth;
  int64_t a_pitch, b_pitch;  // distance from one row to the next, in numbers
  bool a_transposed, b_transposed, bias, relu, add;
  cudaDataType in, out;
  std::array<uint32_t, 4> alignment;  // of a, b, the matrix to add, and of output and bias together
  auto operator<=>(const ProductShape&) const = default;
};

// Note [Row-major products]
// cuBLASLt stores matrices by columns, so it sees a row-major matrix as its transpose. To get c = a
// b, this code asks it for cᵀ = bᵀ aᵀ. So b is its first operand. It must transpose an operand
// exactly if the product of row-major matrices transposes that operand.
struct PreparedProduct {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm;
};

cublasLtMatrixLayout_t layout(cudaDataType type, int64_t rows, int64_t cols, int64_t pitch) {
  cublasLtMatrixLayout_t made = nullptr;  // `cols` is the length of cuBLASLt's columns
  check_cublas(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(cols),
                                          static_cast<uint64_t>(rows), pitch),
               "cannot describe a matrix");
  return made;
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what, const Value& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof(value)),
               "cannot describe a product");
}

class CublasProducts {
 public:
  explicit CublasProducts(Cuda on) : workspace_(allocate(kWorkspace, on)) {
    check_cublas(cublasLtCreate(&handle_), "cannot start");
  }

  const PreparedProduct& prepared(const ProductShape& shape) {
    const auto found = kept_.find(shape);
    return found != kept_.end() ? found->second
                                : kept_.emplace(shape, prepare(shape)).first->second;
  }

  // c = a b; if `onto` is not null, c = a b + onto.
  void multiply(const PreparedProduct& p, const void* a, const void* b, const void* onto, void* c,
                cudaStream_t stream) {
    const float one = 1, beta = onto ? 1 : 0;
    check_cublas(
        cublasLtMatmul(handle_, p.operation, &one, b, p.first, a, p.second, &beta, onto ? onto : c,
                       p.result, c, p.result, &p.algorithm, workspace_.get(), kWorkspace, stream),
        "cannot multiply");
  }

 private:
  PreparedProduct prepare(const ProductShape& s) const {
    PreparedProduct p;
    check_cublas(cublasLtMatmulDescCreate(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                 "cannot describe a product");
    set(p.operation, CUBLASLT_MATMUL_DESC_TRANSA, s.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    set(p.operation, CUBLASLT_MATMUL_DESC_TRANSB, s.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N);
    if (s.bias)
      set(p.operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
          s.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
    p.first = s.b_transposed ? layout(s.in, s.cols, s.depth, s.b_pitch)
                             : layout(s.in, s.depth, s.cols, s.b_pitch);
    p.second = s.a_transposed ? layout(s.in, s.depth, s.rows, s.a_pitch)
                              : layout(s.in, s.rows, s.depth, s.a_pitch);
    p.result = layout(s.out, s.rows, s.cols, s.cols);
    p.algorithm = best(p, s);
    return p;
  }

  cublasLtMatmulAlgo_t best(const PreparedProduct& p, const ProductShape& s) const {
    cublasLtMatmulPreference_t preference = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&preference), "cannot choose an algorithm");
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      check_cublas(cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof(value)),
                   "cannot choose an algorithm");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.alignment[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.alignment[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s.alignment[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s.alignment[3]);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t result = cublasLtMatmulAlgoGetHeuristic(
        handle_, p.operation, p.first, p.second, p.result, p.result, preference, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(preference);
    check_cublas(result, "cannot choose an algorithm");
    check(count > 0, ExitCode::unexpected, "cuBLASLt has no algorithm for a product of ", s.rows,
          " × ", s.depth, " × ", s.cols);
    return found.algo;
  }

  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_;
  std::map<ProductShape, PreparedProduct> kept_;
};

// The object is never destroyed, because the driver may be unloaded before static objects are
// destroyed.
CublasProducts& products(Cuda on) {
  static CublasProducts* const only = new CublasProducts(on);
  return *only;
}

uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return bits % 256 == 0 ? 256u : static_cast<uint32_t>(bits & (~bits + 1));
}

template <class T>
__global__ void fold_bias(Matrix<T> c, const T* bias, OutputMode fold) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= c.size()) return;
  fold_pack<1>(c.data + at, fold, bias ? load<1>(bias + at % c.cols) : Pack<1>{});
}

template <class T>
constexpr cudaDataType data_type() {
  return std::is_same_v<T, bf16> ? CUDA_R_16BF : CUDA_R_32F;
}

template <class T>
void start_with_bias(Cuda on, Matrix<T> c, const T* bias, OutputMode fold) {
  fold_bias<<<blocks_for(c.size(), kThreads), kThreads, 0, stream(on)>>>(c, bias, fold);
  check_launch("matmul");
}

// Note [Factors of whole packs]
// A pack is 8 adjacent bf16 numbers, 16 bytes. If rows of bf16 do not begin at multiples of 16
// bytes, or if a side is not a multiple of 8 (such as 620), cuBLASLt multiplies three times more
// slowly. For a large product, such an operand is copied. A row of the copy has the numbers of one
// sum (k = 0, 1, …), padded with zeros to whole packs. Both operands get this depth. If the number
// of columns of c is not a multiple of 8, b gets additional rows of zeros, and the sums first go to
// a buffer with wider rows. All this takes a few per cent of the product's time.
constexpr int kPack = 8, kRowsOfBlock = 8;
constexpr int64_t kLarge = int64_t{1} << 29;  // minimum multiplications of a large product
int64_t whole_packs(int64_t count) { return (count + kPack - 1) / kPack * kPack; }

// Copies x to y [rows, pitch] and fills the rest of y with zeros.
template <int kWide>
__global__ void __launch_bounds__(kWarp* kRowsOfBlock)
    pad_rows(Matrix<const bf16> x, bf16* y, int64_t rows, int64_t pitch) {
  const int64_t i = int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.y;
  if (i >= rows) return;
  for (int64_t j = kPack * threadIdx.x; j < pitch; j += kPack * kWarp) {
    Pack<kPack> pack{};
#pragma unroll
    for (int w = 0; w < kPack; w += kWide) {
      if (i >= x.rows || j + w >= x.cols) continue;
      const Pack<kWide> some = load<kWide>(x.row(i) + j + w);
#pragma unroll
      for (int u = 0; u < kWide; ++u) pack.at[w + u] = some.at[u];
    }
    store(y + i * pitch + j, pack);
  }
}

// Transposes x tile by tile to y [rows, pitch] and fills the rest of y with zeros. A lane reads and
// writes two numbers at a time.
constexpr int kTile = 2 * kWarp;
template <int kWide>
__global__ void __launch_bounds__(kWarp* kRowsOfBlock)
    transpose_rows(Matrix<const bf16> x, bf16* y, int64_t rows, int64_t pitch) {
  __shared__ alignas(4) bf16 tile[kTile][kTile + 2];
  const int64_t top = int64_t{blockIdx.y} * kTile, left = int64_t{blockIdx.x} * kTile;
  const int two = 2 * static_cast<int>(threadIdx.x);
#pragma unroll
  for (int r = 0; r < kTile; r += kRowsOfBlock) {
    const int i = r + static_cast<int>(threadIdx.y);
#pragma unroll
    for (int w = 0; w < 2; w += kWide) {
      const bool inside = top + i < x.rows && left + two + w < x.cols;
      store(&tile[i][two + w],
            inside ? load<kWide>(x.row(top + i) + left + two + w) : Pack<kWide>{});
    }
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kTile; r += kRowsOfBlock) {
    const int j = r + static_cast<int>(threadIdx.y);
    const ushort2 pair{tile[two][j].bits, tile[two + 1][j].bits};
    if (left + j < rows && top + two < pitch)
      *reinterpret_cast<ushort2*>(y + (left + j) * pitch + top + two) = pair;
  }
}

// An operand in the form that cuBLASLt reads. If it is a copy, `copy` owns its memory. If
// along_depth, a row has the numbers of one sum (k = 0, 1, …), otherwise a column has them.
struct CublasOperand {
  const void* data;
  int64_t pitch;
  bool along_depth;
  Buffer copy{};
};

CublasOperand in_place(const auto& x, bool along_depth) { return {x.data, x.cols, along_depth}; }

// A copy of x with `rows` rows along the depth k, padded with zeros to whole packs (Note [Factors
// of whole packs]).
CublasOperand padded_copy(Cuda on, Matrix<const bf16> x, bool along_depth, int64_t rows) {
  const int64_t pitch = whole_packs(along_depth ? x.cols : x.rows);
  Buffer copy = allocate(static_cast<std::size_t>(rows * pitch) * sizeof(bf16), on);
  auto* const y = reinterpret_cast<bf16*>(copy.get());
  const dim3 threads(kWarp, kRowsOfBlock);
  if (along_depth) {
    const bool fours = x.cols % 4 == 0 && at_fours(x.data);
    auto* const kernel = fours ? pad_rows<4> : pad_rows<1>;
    kernel<<<blocks_for(rows, kRowsOfBlock), threads, 0, stream(on)>>>(x, y, rows, pitch);
  } else {
    const dim3 tiles(blocks_for(rows, kTile), blocks_for(pitch, kTile));
    auto* const kernel =
        x.cols % 2 == 0 && at_packs<2>(x.data) ? transpose_rows<2> : transpose_rows<1>;
    kernel<<<tiles, threads, 0, stream(on)>>>(x, y, rows, pitch);
  }
  check_launch("matmul");
  return {y, pitch, true, copy};
}

// The operands of a product in the form that cuBLASLt reads, the depth of the sums, and the number
// of columns of the result, including padding.
struct CublasOperands {
  CublasOperand a, b;
  int64_t depth, cols;
};

template <class T>
CublasOperands cublas_operands(Cuda, const GemmCall<T, float>& p, int64_t depth) {
  return {in_place(p.a, p.a_side == Transposition::as_is),
          in_place(p.b, p.b_side == Transposition::transposed), depth, p.c.cols};
}
template <class T>
CublasOperands cublas_operands(Cuda on, const GemmCall<T, bf16>& p, int64_t depth) {
  const bool a_along = p.a_side == Transposition::as_is,
             b_along = p.b_side == Transposition::transposed;
  const auto uneven = [](Matrix<const bf16> x) {
    return x.cols % kPack != 0 || !at_packs<kPack>(x.data);
  };
  const bool fill = depth % kPack != 0, widen = p.c.cols % kPack != 0;
  if (p.c.size() < kLarge / depth || !(fill || widen || uneven(p.a) || uneven(p.b)))
    return {in_place(p.a, a_along), in_place(p.b, b_along), depth, p.c.cols};
  const int64_t cols = whole_packs(p.c.cols);
  return {
      fill || uneven(p.a) ? padded_copy(on, p.a, a_along, p.c.rows) : in_place(p.a, a_along),
      fill || widen || uneven(p.b) ? padded_copy(on, p.b, b_along, cols) : in_place(p.b, b_along),
      whole_packs(depth), cols};
}

// c = sums + bias + onto. Row i of the sums begins at sums + i · pitch. bias and onto may be null.
template <int kWide, class T>
__global__ void __launch_bounds__(kWarp* kRowsOfBlock)
    finish_sums(const T* sums, int64_t pitch, const T* bias, const T* onto, Matrix<T> c) {
  const int64_t i = int64_t{blockIdx.x} * kRowsOfBlock + threadIdx.y;
  if (i >= c.rows) return;
  for (int64_t j = kWide * threadIdx.x; j < c.cols; j += kWide * kWarp) {
    Pack<kWide> sum = load<kWide>(sums + i * pitch + j);
    for (const T* more : {bias ? bias + j : nullptr, onto ? onto + i * c.cols + j : nullptr}) {
      if (!more) continue;
      const Pack<kWide> pack = load<kWide>(more);
#pragma unroll
      for (int w = 0; w < kWide; ++w) sum.at[w] += pack.at[w];
    }
    store(c.row(i) + j, sum);
  }
}

template <class T>
void finish(Cuda on, const T* sums, int64_t pitch, const T* bias, const T* onto, Matrix<T> c) {
  const bool fours = c.cols % 4 == 0 && at_fours(bias, onto, c.data);
  auto* const kernel = fours ? finish_sums<4, T> : finish_sums<1, T>;
  kernel<<<blocks_for(c.rows, kRowsOfBlock), dim3(kWarp, kRowsOfBlock), 0, stream(on)>>>(
      sums, pitch, bias, onto, c);
  check_launch("matmul");
}

// The destination of a product: c = product + bias + onto.
template <class T>
struct ProductResult {
  T* c;
  const T *onto = nullptr, *bias = nullptr;
  bool relu = false;
};

template <class T, class In>
void product(Cuda on, const CublasOperands& f, int64_t rows, const ProductResult<T>& to, In) {
  const uint32_t of_c = alignment_of(to.c), of_onto = to.onto ? alignment_of(to.onto) : of_c;
  const uint32_t written = to.bias ? std::min(of_c, alignment_of(to.bias)) : of_c;
  const ProductShape shape{rows,
                           f.cols,
                           f.depth,
                           f.a.pitch,
                           f.b.pitch,
                           !f.a.along_depth,
                           f.b.along_depth,
                           to.bias != nullptr,
                           to.relu,
                           to.onto != nullptr,
                           data_type<In>(),
                           data_type<T>(),
                           {alignment_of(f.a.data), alignment_of(f.b.data), of_onto, written}};
  CublasProducts& all = products(on);
  const PreparedProduct& prepared = all.prepared(shape);
  if (to.bias) set(prepared.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, to.bias);
  all.multiply(prepared, f.a.data, f.b.data, to.onto, to.c, stream(on));
}

template <class T, class In>
void product(Cuda on, const GemmCall<T, In>& p) {
  if (p.c.size() == 0) return;
  const int64_t depth = p.a_side == Transposition::transposed ? p.a.rows : p.a.cols;
  assert(!p.onto || (depth > 0 && !p.bias));
  if (depth == 0) return start_with_bias(on, p.c, p.bias, p.fold);
  // If rows of c are not aligned, cuBLASLt may have no product with a bias. So c is first set to
  // the bias, and the product is added.
  if (std::is_same_v<T, bf16> && p.bias && (p.c.cols % 8 != 0 || alignment_of(p.bias) < 16)) {
    start_with_bias(on, p.c, p.bias, p.fold);
    assert(!p.relu);
    GemmCall<T, In> rest = p;
    rest.bias = nullptr, rest.fold = OutputMode::add;
    return product(on, rest);
  }
  const T* const onto = p.fold == OutputMode::set ? nullptr : p.onto ? p.onto : p.c.data;
  const CublasOperands f = cublas_operands(on, p, depth);
  if (f.cols == p.c.cols) {
    const ProductResult<T> to{p.c.data, onto, p.bias, p.relu};
    return product(on, f, p.c.rows, to, In{});
  }
  assert(!p.relu);
  const Buffer sums = allocate(static_cast<std::size_t>(p.c.rows * f.cols) * sizeof(T), on);
  auto* const wide = reinterpret_cast<T*>(sums.get());
  product(on, f, p.c.rows, ProductResult<T>{wide}, In{});
  finish<T>(on, wide, f.cols, p.bias, onto, p.c);
}

}  // namespace

void matmul(Cuda on, const GemmCall<float, float>& p) { product(on, p); }
void matmul(Cuda on, const GemmCall<float, bf16>& p) { product(on, p); }
void matmul(Cuda on, const GemmCall<bf16, bf16>& p) { product(on, p); }
void forget_packed(Cuda) {}  // nothing is stored
bool has_fast_bf16(Cuda) { return true; }

namespace {

// Converts x to y. If both addresses are aligned, as memory of the arena is, it converts eight
// numbers at a time and the last n % 8 numbers one by one.
__global__ void cast_all(const float* x, bf16* y, int64_t n, bool aligned) {
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t threads = int64_t{gridDim.x} * blockDim.x, eights = aligned ? n / 8 : 0;
  for (int64_t i = thread; i < eights; i += threads) store(y + 8 * i, load<8>(x + 8 * i));
  for (int64_t i = 8 * eights + thread; i < n; i += threads) store(y + i, load<1>(x + i));
}

// Note [The last block sums]
// A block sums kWarp packs of adjacent columns over a strip of rows. It stores the sums in
// part[strip, column]. The block that finishes last among the blocks of the same columns then adds
// the strips, in order. So the sum does not depend on which block is last. `done` has one counter
// per group of columns, which counts the finished blocks and is 0 again at the end.
constexpr int kRowsPerBlock = 8;   // rows that a block reads at a time
constexpr int kRowsPerThread = 4;  // loads in flight per thread
template <int kWide, class In>
__global__ void __launch_bounds__(kWarp* kRowsPerBlock)
    sum_strips(Matrix<const In> x, int64_t strip, float* part, unsigned* done, float* sums,
               OutputMode fold) {
  constexpr int kCols = kWarp * kWide;
  __shared__ Pack<kWide> of_row[kRowsPerBlock][kWarp];
  __shared__ bool last;
  const int thread = static_cast<int>(threadIdx.y * kWarp + threadIdx.x);
  const int64_t begin = int64_t{blockIdx.x} * kCols, from = begin + kWide * threadIdx.x;
  const int64_t first = blockIdx.y * strip, end = min(first + strip, x.rows);
  Pack<kWide> sum{};
  if (from < x.cols) {
    for (int64_t i = first + threadIdx.y; i < end; i += kRowsPerThread * kRowsPerBlock) {
      Pack<kWide> next[kRowsPerThread];
#pragma unroll
      for (int u = 0; u < kRowsPerThread; ++u) {
        const int64_t row = i + u * kRowsPerBlock;
        next[u] = row < end ? load<kWide>(x.row(row) + from) : Pack<kWide>{};
      }
#pragma unroll
      for (int u = 0; u < kRowsPerThread; ++u)
#pragma unroll
        for (int w = 0; w < kWide; ++w) sum.at[w] += next[u].at[w];
    }
  }
  of_row[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  const int64_t j = begin + thread;  // the column for which this thread adds the rows of the block
  const bool has = thread < kCols && j < x.cols;
  if (has) {
    float total = 0;
#pragma unroll
    for (int k = 0; k < kRowsPerBlock; ++k) total += of_row[k][thread / kWide].at[thread % kWide];
    part[blockIdx.y * x.cols + j] = total;
    __threadfence();
  }
  __syncthreads();
  if (thread == 0) last = atomicAdd(&done[blockIdx.x], 1u) == gridDim.y - 1;
  __syncthreads();
  if (!last) return;
  __threadfence();
  if (thread == 0) done[blockIdx.x] = 0;
  if (!has) return;
  float total = 0;
#pragma unroll 16
  for (unsigned s = 0; s < gridDim.y; ++s) total += __ldcg(&part[s * x.cols + j]);
  fold_into(sums[j], fold, total);
}

// The counters `done` of Note [The last block sums], all 0.
unsigned* counters(Cuda on, unsigned needed) {
  constexpr unsigned kCapacity = 1 << 16;
  static unsigned* const all = [&] {
    refuse_while_capturing();  // if a capture recorded fill_words(), it would not run now
    void* start = nullptr;
    check_cuda(cudaMalloc(&start, kCapacity * sizeof(unsigned)),
               "cannot allocate memory for counters");
    fill_words(static_cast<std::byte*>(start), kCapacity, 0, on);
    return static_cast<unsigned*>(start);
  }();
  check(needed <= kCapacity, ExitCode::unexpected, "column_sums: more than ", kCapacity * kWarp,
        " columns");
  return all;
}

template <int kWide, class In>
void sum_columns(Cuda on, Matrix<const In> x, float* sums, OutputMode fold) {
  constexpr int64_t kMinRows = 64, kFill = 264;  // kFill: number of blocks that fill a GPU
  const unsigned across = blocks_for(x.cols, kWarp * kWide);
  const int64_t strips = (kFill + across - 1) / across;
  const int64_t strip = std::max(kMinRows, (x.rows + strips - 1) / strips);
  const dim3 blocks(across, blocks_for(x.rows, strip));
  const Buffer part = allocate(blocks.y * static_cast<std::size_t>(x.cols) * sizeof(float), on);
  sum_strips<kWide><<<blocks, dim3(kWarp, kRowsPerBlock), 0, stream(on)>>>(
      x, strip, reinterpret_cast<float*>(part.get()), counters(on, blocks.x), sums, fold);
  check_launch("column_sums");
}

template <class In>
void sum_columns(Cuda on, Matrix<const In> x, float* sums, OutputMode fold) {
  constexpr int kWide = 16 / sizeof(In);
  if (x.cols == 0) return;
  if (x.cols % kWide == 0 && at_packs<kWide>(x.data))
    sum_columns<kWide>(on, x, sums, fold);
  else
    sum_columns<1>(on, x, sums, fold);
}

}  // namespace

void cast(Cuda on, Matrix<const float> x, Matrix<bf16> y) {
  const int64_t n = x.size();
  if (n == 0) return;
  const bool aligned = at_packs<8>(x.data, y.data);
  const unsigned blocks = std::min(blocks_for(n, 8 * kThreads), 4096u);
  cast_all<<<blocks, kThreads, 0, stream(on)>>>(x.data, y.data, n, aligned);
  check_launch("cast");
}

void column_sums(Cuda on, Matrix<const float> x, float* sums, OutputMode fold) {
  sum_columns(on, x, sums, fold);
}
void column_sums(Cuda on, Matrix<const bf16> x, float* sums, OutputMode fold) {
  sum_columns(on, x, sums, fold);
}

}  // namespace fovea::kernel
