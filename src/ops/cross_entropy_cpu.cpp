#include <cmath>
#include <vector>

#include "gemm/small_gemm.h"
#include "ops/cross_entropy_kernel.h"
#include "ops/vector_math.h"

namespace fovea::kernel {
namespace {

template <class T>
struct RowSums {
  T top, exponentials, logits;
};

// Returns the sums of a row of logits, and stores exp(z − top) in `powers`.
template <class T>
RowSums<T> sums_of(const T* z, int64_t n, T* powers) {
  const T top = largest(z, n);
  T sum = 0, total = 0;
#pragma omp simd reduction(+ : sum, total)
  for (int64_t j = 0; j < n; ++j) {
    powers[j] = math::exp(z[j] - top);
    sum += powers[j];
    total += z[j];
  }
  return {top, sum, total};
}

template <class T>
void store(T& to, OutputMode fold, T value) {
  fold_into(to, fold, value);
}
void store(bf16& to, OutputMode, float value) { to = to_bf16(value); }

}  // namespace

template <class T, class Out>
void cross_entropy_grad(Cpu, const LabelledLogits<T>& in, const T* scale, T* losses,
                        T* log_likelihood, Matrix<Out> dlogits, OutputMode fold) {
  const int64_t n = in.logits.cols;
  const T upstream = scale ? *scale : T{1};
  const T smooth = static_cast<T>(in.smoothing), each = smooth / static_cast<T>(n);
#pragma omp parallel if (in.logits.size() > kWorthThreads)
  {
    std::vector<T> powers(static_cast<size_t>(n));
#pragma omp for schedule(static)
    for (int64_t i = 0; i < in.logits.rows; ++i) {
      Out* d = dlogits.data ? dlogits.row(i) : nullptr;
      const int32_t label = in.labels[i];
      if (label < 0) {
        losses[i] = log_likelihood[i] = 0;
        for (int64_t j = 0; d && j < n; ++j) store(d[j], fold, T{0});
        continue;
      }
      const T* z = in.logits.row(i);
      T* p = powers.data();
      const RowSums<T> s = sums_of(z, n, p);
      const T log_exponentials = std::log(s.exponentials), log_sum = s.top + log_exponentials;
      // This order of operations stays accurate if the probability of the label is nearly 1.
      log_likelihood[i] = (z[label] - s.top) - log_exponentials;
      // The loss is −Σ_v q_v (z_v − log Σ exp z).
      losses[i] = log_sum - (1 - smooth) * z[label] - each * s.logits;
      if (!d) continue;
      const T by = upstream / s.exponentials, less = upstream * each;
      p[label] -= (1 - smooth) * s.exponentials;  // now each gradient is by · p[j] − less
      for (int64_t j = 0; j < n; ++j) store(d[j], fold, by * p[j] - less);
    }
  }
}

template <class T>
void cross_entropy(Cpu on, const LabelledLogits<T>& in, T* losses, T* log_likelihood) {
  cross_entropy_grad<T, T>(on, in, nullptr, losses, log_likelihood, {}, OutputMode::set);
}

template void cross_entropy(Cpu, const LabelledLogits<float>&, float*, float*);
template void cross_entropy(Cpu, const LabelledLogits<double>&, double*, double*);
template void cross_entropy_grad(Cpu, const LabelledLogits<float>&, const float*, float*, float*,
                                 Matrix<float>, OutputMode);
template void cross_entropy_grad(Cpu, const LabelledLogits<float>&, const float*, float*, float*,
                                 Matrix<bf16>, OutputMode);
template void cross_entropy_grad(Cpu, const LabelledLogits<double>&, const double*, double*,
                                 double*, Matrix<double>, OutputMode);

}  // namespace fovea::kernel
