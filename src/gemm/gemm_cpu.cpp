#include <algorithm>
#include <bit>
#include <vector>

#include "gemm/amx.h"
#include "gemm/gemm_kernel.h"
#include "gemm/onednn.h"
#include "gemm/split_rows.h"

namespace fovea::kernel {
namespace {

using dnnl::memory;

template <class In>
constexpr memory::data_type kIn =
    std::is_same_v<In, float> ? memory::data_type::f32 : memory::data_type::bf16;

void add_to(Matrix<float> y, Matrix<const float> x) {
#pragma omp parallel for simd schedule(static) if (x.size() > kWorthThreads)
  for (int64_t i = 0; i < x.size(); ++i) y.data[i] += x.data[i];
}

template <class In>
int64_t depth(const GemmCall<float, In>& p) {
  return p.a_side == Transposition::transposed ? p.a.rows : p.a.cols;
}

template <class In>
void write_empty_sums(const GemmCall<float, In>& p) {
  for (int64_t i = 0; i < p.c.rows; ++i)
    for (int64_t j = 0; j < p.c.cols; ++j)
      fold_into(p.c.row(i)[j], p.fold, p.bias ? p.bias[j] : 0.0f);
}

// Operand b: if a copy is to be stored (home or keep_b), the copy in the layout `order`, otherwise
// b as it is.
template <class In>
PackedMatrix factor_b(const GemmCall<float, In>& p, const memory::desc& order) {
  const int64_t k = depth(p), n = p.c.cols;
  const bool transposed = p.b_side == Transposition::transposed;
  const memory plain({{k, n}, kIn<In>, transposed ? memory::dims{1, k} : memory::dims{n, 1}},
                     engine(), const_cast<In*>(p.b.data));
  return p.home     ? packed(order, plain, *p.home)
         : p.keep_b ? packed(order, plain)
                    : PackedMatrix{plain, nullptr};
}

template <class In>
void product_by_onednn(const GemmCall<float, In>& p) {
  const ProductShape shape{p.c.rows,
                           p.c.cols,
                           depth(p),
                           p.a_side == Transposition::transposed,
                           p.b_side == Transposition::transposed,
                           p.keep_b,
                           p.bias != nullptr,
                           p.fold == OutputMode::add,
                           kIn<In>,
                           memory::data_type::f32};
  const KeptProduct& kept = kept_product(shape);
  const PackedMatrix b = factor_b(p, kept.order);
  execute(kept, p.a.data, b.values, p.bias, p.c.data);
}

// If a product has one row and a depth above kDeep, oneDNN 3 sums this row in another order than in
// a product of several rows. So the result would differ. A second row of zeros avoids this. It
// costs little, because most of the time goes into reading the weights.
constexpr int64_t kDeep = 1024;

template <class In>
void product_of_one_row(const GemmCall<float, In>& p) {
  const int64_t k = depth(p), n = p.c.cols;
  thread_local std::vector<In> a;
  thread_local std::vector<float> c;
  a.assign(static_cast<size_t>(2 * k), In{});
  c.assign(static_cast<size_t>(2 * n), 0.0f);
  std::copy_n(p.a.data, k, a.data());
  std::copy_n(p.c.data, n, c.data());
  GemmCall<float, In> two = p;
  two.a = {a.data(), 2, k}, two.c = {c.data(), 2, n};
  product_by_onednn(two);
  std::copy_n(c.data(), n, p.c.data);
}

template <class In>
void product_of_part(const GemmCall<float, In>& p) {
  if (p.c.rows == 1 && p.a_side == Transposition::as_is && depth(p) > kDeep)
    return product_of_one_row(p);
  product_by_onednn(p);
}

template <class T>
Matrix<T> rows_of(Matrix<T> x, int64_t first, int64_t count) {
  return {x.row(first), count, x.cols};
}

// Computes the rows first … first + count − 1 of the product.
template <class In>
void product_of_rows(GemmCall<float, In> p, int64_t first, int64_t count) {
  p.a = rows_of(p.a, first, count), p.c = rows_of(p.c, first, count);
  product_of_part(p);
}

// Decoding multiplies matrices of many different numbers of rows by weights. oneDNN would need a
// compiled product for each number. So the rows are divided into two ranges: whole blocks of
// kRowsOfBlock rows, and the last rows. This needs fewer different products, and is as fast if the
// weights fit in a cache.
constexpr int64_t kRowsOfBlock = 16, kCachedBytes = 16 << 20;

template <class In>
bool in_blocks(const GemmCall<float, In>& p) {
  const int64_t bytes = depth(p) * p.c.cols * static_cast<int64_t>(sizeof(In));
  return p.home && bytes <= kCachedBytes && p.a_side == Transposition::as_is &&
         p.c.rows > kRowsOfBlock && p.c.rows % kRowsOfBlock != 0;
}

template <class In>
void product(const GemmCall<float, In>& p) {
  if (p.c.size() == 0) return;
  if (depth(p) == 0) return write_empty_sums(p);
  if constexpr (std::is_same_v<In, bf16>) {
    if (has_tiles()) {
      if (!p.keep_b) return multiply_tiles(p, nullptr);
      const PackedMatrix b = factor_b(p, order_of_tiles(depth(p), p.c.cols));
      return multiply_tiles(p, b.values.get_data_handle());
    }
  }
  const bool sums_rows = p.a_side == Transposition::transposed && p.b_side == Transposition::as_is;
  if (p.a.rows < kWorthHalves || !(sums_rows || p.a_side == Transposition::as_is)) {
    if (!in_blocks(p)) return product_of_part(p);
    const int64_t whole = p.c.rows / kRowsOfBlock * kRowsOfBlock;
    product_of_rows(p, 0, whole);
    return product_of_rows(p, whole, p.c.rows - whole);
  }
  if (!sums_rows)
    return in_halves(p.a.rows,
                     [&](int, int64_t first, int64_t count) { product_of_rows(p, first, count); });
  const Matrix<float> second{room_for_half(static_cast<size_t>(p.c.size())), p.c.rows, p.c.cols};
  in_halves(p.a.rows, [&](int h, int64_t first, int64_t count) {
    GemmCall<float, In> half = p;
    half.a = rows_of(p.a, first, count), half.b = rows_of(p.b, first, count);
    if (h == 1) half.c = second, half.fold = OutputMode::set, half.bias = nullptr;
    product_of_part(half);
  });
  add_to(p.c, second);
}

}  // namespace

void matmul(Cpu, const GemmCall<float, float>& p) { product(p); }
void matmul(Cpu, const GemmCall<float, bf16>& p) { product(p); }

// A product for checks in double precision: plain loops that sum over k in order.
void matmul(Cpu, const GemmCall<double, double>& p) {
  const bool ta = p.a_side == Transposition::transposed, tb = p.b_side == Transposition::transposed;
  const int64_t k = ta ? p.a.rows : p.a.cols;
  for (int64_t i = 0; i < p.c.rows; ++i)
    for (int64_t j = 0; j < p.c.cols; ++j) {
      double sum = p.bias ? p.bias[j] : 0;
      for (int64_t l = 0; l < k; ++l)
        sum += (ta ? p.a.row(l)[i] : p.a.row(i)[l]) * (tb ? p.b.row(j)[l] : p.b.row(l)[j]);
      fold_into(p.c.row(i)[j], p.fold, sum);
    }
}

// On Intel processors, bf16 products are faster than float32 only by AMX tiles, not by bf16
// vectors.
bool has_fast_bf16(Cpu) {
  static const bool has =
      has_tiles() || (__builtin_cpu_supports("avx512bf16") && __builtin_cpu_is("amd"));
  return has;
}

void cast(Cpu, Matrix<const float> x, Matrix<bf16> y) {
  const int64_t n = x.size();
#pragma omp parallel for simd schedule(static) if (n > kWorthThreads)
  for (int64_t i = 0; i < n; ++i) y.data[i] = to_bf16(x.data[i]);
}

namespace {

template <class T>
T number(T x) {
  return x;
}
float number(bf16 x) { return std::bit_cast<float>(uint32_t{x.bits} << 16); }

// Sums blocks of a fixed number of rows, and then adds the sums of the blocks in order. So the
// result does not depend on the number of threads.
template <class T, class In>
void sum_columns(Matrix<const In> x, T* sums, OutputMode fold) {
  constexpr int64_t kBlock = 256;
  const int64_t blocks = (x.rows + kBlock - 1) / kBlock;
  std::vector<T> part(static_cast<size_t>(blocks * x.cols), T{0});
#pragma omp parallel for schedule(static) if (x.size() > kWorthThreads)
  for (int64_t b = 0; b < blocks; ++b) {
    T* to = part.data() + b * x.cols;
    for (int64_t i = b * kBlock; i < std::min(x.rows, (b + 1) * kBlock); ++i) {
      const In* row = x.row(i);
      for (int64_t j = 0; j < x.cols; ++j) to[j] += number(row[j]);
    }
  }
  for (int64_t j = 0; j < x.cols; ++j) {
    T sum = 0;
    for (int64_t b = 0; b < blocks; ++b) sum += part[static_cast<size_t>(b * x.cols + j)];
    fold_into(sums[j], fold, sum);
  }
}

}  // namespace

void column_sums(Cpu, Matrix<const float> x, float* sums, OutputMode fold) {
  sum_columns(x, sums, fold);
}
void column_sums(Cpu, Matrix<const bf16> x, float* sums, OutputMode fold) {
  sum_columns(x, sums, fold);
}
void column_sums(Cpu, Matrix<const double> x, double* sums, OutputMode fold) {
  sum_columns(x, sums, fold);
}

}  // namespace fovea::kernel
