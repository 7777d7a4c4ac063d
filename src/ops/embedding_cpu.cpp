#include <cstddef>
#include <vector>

#include "ops/dropout_mask.h"
#include "ops/embedding_kernel.h"

namespace fovea::kernel {

template <class T>
void embed(Cpu, const EmbeddingInput<T>& in, Matrix<T> y, Matrix<bf16>) {
  const DropoutMask mask(in.dropout);
  const T scale = static_cast<T>(in.scale);
#pragma omp parallel if (y.size() > kWorthThreads)
  {
    std::vector<T> keep(static_cast<std::size_t>(y.cols), T{1});
#pragma omp for schedule(static)
    for (int64_t i = 0; i < y.rows; ++i) {
      if (in.dropout.on()) dropout_row(mask, i, y.cols, keep.data());
      const T* e = in.E.row(in.ids[i]);
      const T* p = in.P.data ? in.P.row(in.places[i]) : nullptr;
      T* out = y.row(i);
      for (int64_t j = 0; j < y.cols; ++j) out[j] = (scale * e[j] + (p ? p[j] : T{0})) * keep[j];
    }
  }
}

// Each job has its own range of rows of the table. It scans all words in order and adds the
// gradients of words in its range. So no two threads write the same row, and each row adds its
// terms in the order of the words.
template <class T>
void embed_grad(Cpu, const int32_t* ids, Matrix<const T> dy, double scale, const Dropout& dropout,
                Matrix<T> dE) {
  constexpr int kParts = 8;
  const DropoutMask mask(dropout);
  const T by = static_cast<T>(scale);
#pragma omp parallel for schedule(static) if (dy.size() > kWorthThreads)
  for (int part = 0; part < kParts; ++part) {
    std::vector<T> keep(static_cast<std::size_t>(dy.cols), T{1});
    for (int64_t i = 0; i < dy.rows; ++i) {
      if (ids[i] % kParts != part) continue;
      if (dropout.on()) dropout_row(mask, i, dy.cols, keep.data());
      const T* d = dy.row(i);
      T* to = dE.row(ids[i]);
      for (int64_t j = 0; j < dy.cols; ++j) to[j] += by * d[j] * keep[j];
    }
  }
}

#define FOVEA_INSTANTIATE(T)                                                   \
  template void embed(Cpu, const EmbeddingInput<T>&, Matrix<T>, Matrix<bf16>); \
  template void embed_grad(Cpu, const int32_t*, Matrix<const T>, double, const Dropout&, Matrix<T>);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
