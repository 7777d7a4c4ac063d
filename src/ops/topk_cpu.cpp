#include <algorithm>
#include <limits>
#include <vector>

#include "gemm/small_gemm.h"
#include "ops/topk_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

constexpr int64_t kBlock = 128;  // columns per block (Note [Top k by blocks])

template <class T>
struct Entry {
  T value;
  int32_t column;
};

// A list of the largest `capacity` entries that were offered, in descending order. Equal entries
// must be offered in ascending order of their columns, and the list keeps that order.
template <class T>
class LargestEntries {
 public:
  explicit LargestEntries(int64_t capacity) : capacity_(capacity) {
    entries_.reserve(capacity + 1);
  }

  void clear() { entries_.clear(); }
  bool full() const { return static_cast<int64_t>(entries_.size()) == capacity_; }
  void offer(T value, int64_t column) {
    if (full() && !(value > entries_.back().value)) return;
    if (full()) entries_.pop_back();
    auto at = entries_.end();
    while (at != entries_.begin() && value > (at - 1)->value) --at;
    entries_.insert(at, {value, static_cast<int32_t>(column)});
  }
  std::vector<Entry<T>>& entries() { return entries_; }

 private:
  int64_t capacity_;
  std::vector<Entry<T>> entries_;
};

template <class T>
T sum_of_exp(const T* x, int64_t n, T top) {
  T sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < n; ++j) sum += math::exp(x[j] - top);
  return sum;
}

// Note [Top k by blocks]
// A row is divided into blocks of kBlock columns. The k largest entries lie in the k blocks with
// the largest maxima (of equal maxima, the earlier block counts as larger). The reason: each of
// these k blocks has an entry, its maximum, that precedes every entry of any other block. So one
// pass finds the maximum of each block, and a second pass searches only k blocks. Entries below the
// smallest of these k maxima are skipped.
template <class T>
void top_of_row(const T* x, int64_t cols, LargestEntries<T>& blocks, LargestEntries<T>& best) {
  blocks.clear();
  best.clear();
  for (int64_t first = 0; first < cols; first += kBlock)
    blocks.offer(largest(x + first, std::min(kBlock, cols - first)), first);
  const T least =
      blocks.full() ? blocks.entries().back().value : -std::numeric_limits<T>::infinity();
  std::ranges::sort(blocks.entries(), {}, &Entry<T>::column);
  for (const Entry<T>& block : blocks.entries())
    for (int64_t j = block.column; j < std::min(block.column + kBlock, cols); ++j)
      if (x[j] >= least) best.offer(x[j], j);  // not offered if x[j] is NaN
}

}  // namespace

template <class T>
void top_k(Cpu, Matrix<const T> x, T* log_sum, Matrix<T> values, Matrix<int32_t> columns) {
  const int64_t k = values.cols;
#pragma omp parallel if (x.size() > kWorthThreads)
  {
    LargestEntries<T> blocks(k), best(k);
#pragma omp for schedule(static)
    for (int64_t i = 0; i < x.rows; ++i) {
      top_of_row(x.row(i), x.cols, blocks, best);
      const auto& found = best.entries();
      const T top = found.empty() ? T{0} : found.front().value;
      log_sum[i] = top + std::log(sum_of_exp(x.row(i), x.cols, top));
      for (int64_t j = 0; j < k; ++j) {
        const bool exists = j < static_cast<int64_t>(found.size());
        values.row(i)[j] = exists ? found[j].value : -std::numeric_limits<T>::infinity();
        columns.row(i)[j] = exists ? found[j].column : -1;
      }
    }
  }
}

template <class T>
void add_probabilities(Cpu, Matrix<const T> x, T share, OutputMode fold, Matrix<T> p) {
#pragma omp parallel for schedule(static) if (x.size() > kWorthThreads)
  for (int64_t i = 0; i < x.rows; ++i) {
    const T* in = x.row(i);
    T* out = p.row(i);
    const T top = largest(in, x.cols);
    const T scale = share / sum_of_exp(in, x.cols, top);
    for (int64_t j = 0; j < x.cols; ++j) fold_into(out[j], fold, scale * math::exp(in[j] - top));
  }
}

template void top_k(Cpu, Matrix<const float>, float*, Matrix<float>, Matrix<int32_t>);
template void top_k(Cpu, Matrix<const double>, double*, Matrix<double>, Matrix<int32_t>);
template void add_probabilities(Cpu, Matrix<const float>, float, OutputMode, Matrix<float>);
template void add_probabilities(Cpu, Matrix<const double>, double, OutputMode, Matrix<double>);

}  // namespace fovea::kernel
