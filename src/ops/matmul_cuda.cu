#include <cublasLt.h>

#include <array>
#include <compare>
#include <map>

#include "base/check.h"
#include "ops/matmul_kernel.h"
#include "ops/pack.cuh"
#include "ops/warp.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"

namespace fovea::kernel {
namespace {

constexpr std::size_t kWorkspace = std::size_t{64} << 20;
constexpr int kThreads = 256;

void check_cublas(cublasStatus_t result, const char* what) {
  if (result == CUBLAS_STATUS_SUCCESS) return;
  const bool memory = result == CUBLAS_STATUS_ALLOC_FAILED;
  if (memory) cudaGetLastError();  // it would be reported again by the next launch
  fail(memory ? Exit::memory : Exit::unexpected, "cuBLASLt: ", what, ": ",
       cublasLtGetStatusString(result), memory ? "; " : "", memory ? kNeedsLess : "");
}

// What an algorithm is chosen for. Alignments are in bytes, 256 at most.
struct ProductShape {
  int64_t rows, cols, depth;
  int64_t a_pitch, b_pitch;  // numbers from one row to the next
  bool a_transposed, b_transposed, bias, relu, add;
  cudaDataType in, out;
  std::array<uint32_t, 4> alignment;  // of a, b, c, and of what is written: c with its bias
  auto operator<=>(const ProductShape&) const = default;
};

// Note [Row-major products]
// cuBLASLt counts columns first: a row-major matrix is its transpose there. c = a b in rows is
// cᵀ = bᵀ aᵀ in columns, so b comes first, and each factor is turned exactly where ours is.
struct Prepared {
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, result = nullptr;
  cublasLtMatmulAlgo_t algorithm;
};

cublasLtMatrixLayout_t layout(cudaDataType type, int64_t rows, int64_t cols, int64_t pitch) {
  cublasLtMatrixLayout_t made = nullptr;  // of our rows × cols: columns of length `cols`
  check_cublas(cublasLtMatrixLayoutCreate(&made, type, static_cast<uint64_t>(cols),
                                          static_cast<uint64_t>(rows), pitch),
               "describing a matrix");
  return made;
}

template <class Value>
void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what, const Value& value) {
  check_cublas(cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof(value)),
               "describing a product");
}

class Products {
 public:
  explicit Products(Cuda on) : workspace_(allocate(kWorkspace, on)) {
    check_cublas(cublasLtCreate(&handle_), "starting");
  }

  const Prepared& prepared(const ProductShape& shape) {
    const auto found = kept_.find(shape);
    return found != kept_.end() ? found->second
                                : kept_.emplace(shape, prepare(shape)).first->second;
  }

  // c = a b, added to `onto` where that is given.
  void multiply(const Prepared& p, const void* a, const void* b, const void* onto, void* c,
                cudaStream_t stream) {
    const float one = 1, beta = onto ? 1 : 0;
    check_cublas(
        cublasLtMatmul(handle_, p.operation, &one, b, p.first, a, p.second, &beta, onto ? onto : c,
                       p.result, c, p.result, &p.algorithm, workspace_.get(), kWorkspace, stream),
        "multiplying");
  }

 private:
  Prepared prepare(const ProductShape& s) const {
    Prepared p;
    check_cublas(cublasLtMatmulDescCreate(&p.operation, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                 "describing a product");
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

  cublasLtMatmulAlgo_t best(const Prepared& p, const ProductShape& s) const {
    cublasLtMatmulPreference_t wish = nullptr;
    check_cublas(cublasLtMatmulPreferenceCreate(&wish), "choosing an algorithm");
    auto prefer = [&](cublasLtMatmulPreferenceAttributes_t what, const auto& value) {
      check_cublas(cublasLtMatmulPreferenceSetAttribute(wish, what, &value, sizeof(value)),
                   "choosing an algorithm");
    };
    prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kWorkspace);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, s.alignment[1]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, s.alignment[0]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, s.alignment[2]);
    prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, s.alignment[3]);
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    const cublasStatus_t result = cublasLtMatmulAlgoGetHeuristic(
        handle_, p.operation, p.first, p.second, p.result, p.result, wish, 1, &found, &count);
    cublasLtMatmulPreferenceDestroy(wish);
    check_cublas(result, "choosing an algorithm");
    check(count > 0, Exit::unexpected, "cuBLASLt has no algorithm for a product of ", s.rows, " × ",
          s.depth, " × ", s.cols);
    return found.algo;
  }

  cublasLtHandle_t handle_ = nullptr;
  Buffer workspace_;
  std::map<ProductShape, Prepared> kept_;
};

// Never destroyed: the driver may be gone when static objects are.
Products& products(Cuda on) {
  static Products* const only = new Products(on);
  return *only;
}

uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return bits % 256 == 0 ? 256u : static_cast<uint32_t>(bits & (~bits + 1));
}

template <class T>
__global__ void fold_bias(Matrix<T> c, const T* bias, Fold fold) {
  const int64_t at = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (at >= c.size()) return;
  fold_pack<1>(c.data + at, fold, bias ? load<1>(bias + at % c.cols) : Pack<1>{});
}

template <class T>
constexpr cudaDataType data_type() {
  return std::is_same_v<T, bf16> ? CUDA_R_16BF : CUDA_R_32F;
}

template <class T>
void start_with_bias(Cuda on, Matrix<T> c, const T* bias, Fold fold) {
  fold_bias<<<blocks_for(c.size(), kThreads), kThreads, 0, stream(on)>>>(c, bias, fold);
  check_launch("matmul");
}

// Note [Factors of whole packs]
// cuBLASLt multiplies three times more slowly where rows of bf16 do not begin at multiples of 16
// bytes, or where a side is no multiple of 8, as 620. For a large product such a factor is copied:
// to rows along the depth, which is filled up with zeros in both factors where it is uneven itself.
// Where c has uneven rows, b gets rows of zeros and the sums come to wider rows of their own first.
// All that takes a few per cent of the product's time.
constexpr int kPack = 8, kRowsOfBlock = 8;
constexpr int64_t kLarge = int64_t{1} << 29;  // multiplications
int64_t in_packs(int64_t count) { return (count + kPack - 1) / kPack * kPack; }

// y is rows × pitch, with zeros where x has nothing.
template <int kWide>
__global__ void __launch_bounds__(kWarp* kRowsOfBlock)
    space_rows(Matrix<const bf16> x, bf16* y, int64_t rows, int64_t pitch) {
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

// The columns of x as rows, tile by tile: a warp reads and writes lines of two numbers per lane.
constexpr int kTile = 2 * kWarp;
template <int kWide>
__global__ void __launch_bounds__(kWarp* kRowsOfBlock)
    turn_rows(Matrix<const bf16> x, bf16* y, int64_t rows, int64_t pitch) {
  __shared__ alignas(4) bf16 tile[kTile][kTile + 2];
  const int64_t top = int64_t{blockIdx.y} * kTile, left = int64_t{blockIdx.x} * kTile;
  const int two = 2 * static_cast<int>(threadIdx.x);
#pragma unroll
  for (int r = 0; r < kTile; r += kRowsOfBlock) {
    const int i = r + static_cast<int>(threadIdx.y);
#pragma unroll
    for (int w = 0; w < 2; w += kWide) {
      const bool there = top + i < x.rows && left + two + w < x.cols;
      store(&tile[i][two + w],
            there ? load<kWide>(x.row(top + i) + left + two + w) : Pack<kWide>{});
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

// A factor as cuBLASLt gets it, with the memory of a copy where there is one.
struct Laid {
  const void* data;
  int64_t pitch;
  bool along_depth;
  Buffer copy{};
};

Laid as_it_is(const auto& x, bool along_depth) { return {x.data, x.cols, along_depth}; }

// A copy with `rows` rows along the depth, which are filled up to whole packs.
Laid copied(Cuda on, Matrix<const bf16> x, bool along_depth, int64_t rows) {
  const int64_t pitch = in_packs(along_depth ? x.cols : x.rows);
  Buffer copy = allocate(static_cast<std::size_t>(rows * pitch) * sizeof(bf16), on);
  auto* const y = reinterpret_cast<bf16*>(copy.get());
  const dim3 threads(kWarp, kRowsOfBlock);
  if (along_depth) {
    const bool fours = x.cols % 4 == 0 && at_fours(x.data);
    auto* const kernel = fours ? space_rows<4> : space_rows<1>;
    kernel<<<blocks_for(rows, kRowsOfBlock), threads, 0, stream(on)>>>(x, y, rows, pitch);
  } else {
    const dim3 tiles(blocks_for(rows, kTile), blocks_for(pitch, kTile));
    auto* const kernel = x.cols % 2 == 0 && at_packs<2>(x.data) ? turn_rows<2> : turn_rows<1>;
    kernel<<<tiles, threads, 0, stream(on)>>>(x, y, rows, pitch);
  }
  check_launch("matmul");
  return {y, pitch, true, copy};
}

// The factors of a product, its depth and the columns of its sums, as cuBLASLt gets them.
struct LaidFactors {
  Laid a, b;
  int64_t depth, cols;
};

template <class T>
LaidFactors laid_out(Cuda, const Product<T, float>& p, int64_t depth) {
  return {as_it_is(p.a, p.a_side == Side::as_is), as_it_is(p.b, p.b_side == Side::transposed),
          depth, p.c.cols};
}
template <class T>
LaidFactors laid_out(Cuda on, const Product<T, bf16>& p, int64_t depth) {
  const bool a_along = p.a_side == Side::as_is, b_along = p.b_side == Side::transposed;
  const auto uneven = [](Matrix<const bf16> x) {
    return x.cols % kPack != 0 || !at_packs<kPack>(x.data);
  };
  const bool fill = depth % kPack != 0, widen = p.c.cols % kPack != 0;
  if (p.c.size() < kLarge / depth || !(fill || widen || uneven(p.a) || uneven(p.b)))
    return {as_it_is(p.a, a_along), as_it_is(p.b, b_along), depth, p.c.cols};
  const int64_t cols = in_packs(p.c.cols);
  return {fill || uneven(p.a) ? copied(on, p.a, a_along, p.c.rows) : as_it_is(p.a, a_along),
          fill || widen || uneven(p.b) ? copied(on, p.b, b_along, cols) : as_it_is(p.b, b_along),
          in_packs(depth), cols};
}

// What stands in wider rows becomes c, with its bias and what it is added to.
template <int kWide, class T>
__global__ void __launch_bounds__(kWarp* kRowsOfBlock)
    take_sums(const T* sums, int64_t pitch, const T* bias, const T* onto, Matrix<T> c) {
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
void take(Cuda on, const T* sums, int64_t pitch, const T* bias, const T* onto, Matrix<T> c) {
  const bool fours = c.cols % 4 == 0 && at_fours(bias, onto, c.data);
  auto* const kernel = fours ? take_sums<4, T> : take_sums<1, T>;
  kernel<<<blocks_for(c.rows, kRowsOfBlock), dim3(kWarp, kRowsOfBlock), 0, stream(on)>>>(
      sums, pitch, bias, onto, c);
  check_launch("matmul");
}

// Where a product goes: c = … + bias + onto.
template <class T>
struct Result {
  T* c;
  const T *onto = nullptr, *bias = nullptr;
  bool relu = false;
};

template <class T, class In>
void product(Cuda on, const LaidFactors& f, int64_t rows, const Result<T>& to, In) {
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
  Products& all = products(on);
  const Prepared& prepared = all.prepared(shape);
  if (to.bias) set(prepared.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, to.bias);
  all.multiply(prepared, f.a.data, f.b.data, to.onto, to.c, stream(on));
}

template <class T, class In>
void product(Cuda on, const Product<T, In>& p) {
  if (p.c.size() == 0) return;
  const int64_t depth = p.a_side == Side::transposed ? p.a.rows : p.a.cols;
  assert(!p.onto || (depth > 0 && !p.bias));
  if (depth == 0) return start_with_bias(on, p.c, p.bias, p.fold);
  // cuBLASLt need not have a product with a bias for rows that are not aligned.
  if (std::is_same_v<T, bf16> && p.bias && (p.c.cols % 8 != 0 || alignment_of(p.bias) < 16)) {
    start_with_bias(on, p.c, p.bias, p.fold);
    assert(!p.relu);
    Product<T, In> rest = p;
    rest.bias = nullptr, rest.fold = Fold::add;
    return product(on, rest);
  }
  const T* const onto = p.fold == Fold::set ? nullptr : p.onto ? p.onto : p.c.data;
  const LaidFactors f = laid_out(on, p, depth);
  if (f.cols == p.c.cols) {
    const Result<T> to{p.c.data, onto, p.bias, p.relu};
    return product(on, f, p.c.rows, to, In{});
  }
  assert(!p.relu);
  const Buffer sums = allocate(static_cast<std::size_t>(p.c.rows * f.cols) * sizeof(T), on);
  auto* const wide = reinterpret_cast<T*>(sums.get());
  product(on, f, p.c.rows, Result<T>{wide}, In{});
  take<T>(on, wide, f.cols, p.bias, onto, p.c);
}

}  // namespace

void matmul(Cuda on, const Product<float, float>& p) { product(on, p); }
void matmul(Cuda on, const Product<float, bf16>& p) { product(on, p); }
void matmul(Cuda on, const Product<bf16, bf16>& p) { product(on, p); }
void forget_packed(Cuda) {}  // factors are taken as they are: nothing is kept
bool has_fast_bf16(Cuda) { return true; }

namespace {

// Eight numbers at a time where both ends are aligned, which the arena's are; then the rest.
__global__ void cast_all(const float* x, bf16* y, int64_t n, bool aligned) {
  const int64_t thread = int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  const int64_t threads = int64_t{gridDim.x} * blockDim.x, eights = aligned ? n / 8 : 0;
  for (int64_t i = thread; i < eights; i += threads) store(y + 8 * i, load<8>(x + 8 * i));
  for (int64_t i = 8 * eights + thread; i < n; i += threads) store(y + i, load<1>(x + i));
}

// Note [The last block sums]
// A block sums kWarp packs of columns over a strip of rows: part[strip, column]. The block that is
// last to be done with its columns adds the strips up, in their order, so that the sum is the same
// whichever that is. `done` counts the blocks of each group of columns and is left at 0.
constexpr int kRowsAtOnce = 8, kAhead = 4;  // rows of a block, and of a thread under way
template <int kWide, class In>
__global__ void __launch_bounds__(kWarp* kRowsAtOnce)
    sum_strips(Matrix<const In> x, int64_t strip, float* part, unsigned* done, float* sums,
               Fold fold) {
  constexpr int kCols = kWarp * kWide;
  __shared__ Pack<kWide> of_row[kRowsAtOnce][kWarp];
  __shared__ bool last;
  const int thread = static_cast<int>(threadIdx.y * kWarp + threadIdx.x);
  const int64_t begin = int64_t{blockIdx.x} * kCols, from = begin + kWide * threadIdx.x;
  const int64_t first = blockIdx.y * strip, end = min(first + strip, x.rows);
  Pack<kWide> sum{};
  if (from < x.cols) {
    for (int64_t i = first + threadIdx.y; i < end; i += kAhead * kRowsAtOnce) {
      Pack<kWide> next[kAhead];
#pragma unroll
      for (int u = 0; u < kAhead; ++u) {
        const int64_t row = i + u * kRowsAtOnce;
        next[u] = row < end ? load<kWide>(x.row(row) + from) : Pack<kWide>{};
      }
#pragma unroll
      for (int u = 0; u < kAhead; ++u)
#pragma unroll
        for (int w = 0; w < kWide; ++w) sum.at[w] += next[u].at[w];
    }
  }
  of_row[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  const int64_t j = begin + thread;  // the column that this thread goes on with
  const bool has = thread < kCols && j < x.cols;
  if (has) {
    float total = 0;
#pragma unroll
    for (int k = 0; k < kRowsAtOnce; ++k) total += of_row[k][thread / kWide].at[thread % kWide];
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

// Counters of Note [The last block sums], all 0.
unsigned* counters(Cuda on, unsigned wanted) {
  constexpr unsigned kMost = 1 << 16;
  static unsigned* const all = [&] {
    refuse_while_capturing();  // they would be cleared in each replay, and not before
    void* start = nullptr;
    check_cuda(cudaMalloc(&start, kMost * sizeof(unsigned)), "taking memory for counters");
    fill_words(static_cast<std::byte*>(start), kMost, 0, on);
    return static_cast<unsigned*>(start);
  }();
  check(wanted <= kMost, Exit::unexpected, "column_sums: more than ", kMost * kWarp, " columns");
  return all;
}

template <int kWide, class In>
void sum_columns(Cuda on, Matrix<const In> x, float* sums, Fold fold) {
  constexpr int64_t kFewestRows = 64, kFill = 264;  // blocks that fill a GPU
  const unsigned across = blocks_for(x.cols, kWarp * kWide);
  const int64_t strips = (kFill + across - 1) / across;
  const int64_t strip = std::max(kFewestRows, (x.rows + strips - 1) / strips);
  const dim3 blocks(across, blocks_for(x.rows, strip));
  const Buffer part = allocate(blocks.y * static_cast<std::size_t>(x.cols) * sizeof(float), on);
  sum_strips<kWide><<<blocks, dim3(kWarp, kRowsAtOnce), 0, stream(on)>>>(
      x, strip, reinterpret_cast<float*>(part.get()), counters(on, blocks.x), sums, fold);
  check_launch("column_sums");
}

template <class In>
void sum_columns(Cuda on, Matrix<const In> x, float* sums, Fold fold) {
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

void column_sums(Cuda on, Matrix<const float> x, float* sums, Fold fold) {
  sum_columns(on, x, sums, fold);
}
void column_sums(Cuda on, Matrix<const bf16> x, float* sums, Fold fold) {
  sum_columns(on, x, sums, fold);
}

}  // namespace fovea::kernel
