#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.h"
#include "ops/attention_window_kernel.h"
#include "ops/vector_math.h"

// Rows are short (a sentence) and few (a batch), so one thread computes all of them.
namespace fovea::kernel {
namespace {

constexpr double kMinUncovered = 1e-6;

template <class T>
T position(int64_t column) {
  return static_cast<T>(column + 1);
}

// A random number in [0, 1) for one row. The constant in the key makes it independent of other
// random numbers from the same seed.
double uniform(const Dropout& key, int64_t row) {
  const PhiloxCounter bits = philox(
      {{static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), key.step, key.op}},
      {{static_cast<uint32_t>(key.seed) ^ 0x64726177u, static_cast<uint32_t>(key.seed >> 32)}});
  return static_cast<double>((uint64_t{bits.v[0]} << 21) ^ (bits.v[1] >> 11)) * 0x1p-53;
}

}  // namespace

void full_range(Cpu, const RaggedIndex& ragged, int64_t reach, RangesOut out) {
  for (int64_t i = 0; i < ragged.queries; ++i) {
    out.low[i] = 0;
    out.high[i] =
        static_cast<int32_t>(reach < 0 ? ragged.words(i) : std::min(ragged.words(i), reach));
  }
}

template <class T>
void window_around(Cpu, Matrix<const T> p, int64_t D, RangesIn within, RangesOut out) {
  for (int64_t i = 0; i < p.rows; ++i) {
    const int64_t middle = static_cast<int64_t>(std::floor(*p.row(i) + T(0.5))) - 1;
    const int64_t low = std::max<int64_t>(within.low[i], middle - D);
    const int64_t high = std::min<int64_t>(within.high[i], middle + D + 1);
    out.low[i] = static_cast<int32_t>(low);
    out.high[i] = static_cast<int32_t>(std::max(low, high));
  }
}

void range_from(Cpu, const int32_t* from, int64_t rows, int64_t slack, RangesIn within,
                RangesOut out) {
  for (int64_t i = 0; i < rows; ++i) {
    out.low[i] = static_cast<int32_t>(std::max<int64_t>(within.low[i], from[i] - slack));
    out.high[i] = within.high[i];
  }
}

template <class T>
void argmax(Cpu, Matrix<const T> x, RangesIn ranges, int32_t* at) {
  for (int64_t i = 0; i < x.rows; ++i) {
    at[i] = ranges.low[i] < ranges.high[i] ? ranges.low[i] : -1;
    for (int32_t j = ranges.low[i]; j < ranges.high[i]; ++j)
      if (x.row(i)[j] > x.row(i)[at[i]]) at[i] = j;
  }
}

template <class T>
void draw(Cpu, Matrix<const T> p, RangesIn ranges, const Dropout& key, int32_t* at) {
  for (int64_t i = 0; i < p.rows; ++i) {
    const T* in = p.row(i);
    double total = 0, sum = 0;
    for (int32_t j = ranges.low[i]; j < ranges.high[i]; ++j) total += static_cast<double>(in[j]);
    const double wanted = uniform(key, i) * total;
    at[i] = -1;
    for (int32_t j = ranges.low[i]; j < ranges.high[i] && sum <= wanted; ++j) {
      sum += static_cast<double>(in[j]);
      if (in[j] > 0) at[i] = j;
    }
  }
}

template <class T>
void one_hot(Cpu, const int32_t* at, Matrix<T> y) {
  std::fill_n(y.data, y.size(), T{0});
  for (int64_t i = 0; i < y.rows; ++i)
    if (at[i] >= 0) y.row(i)[at[i]] = 1;
}

// A sampled column has a positive probability, but a caller may pass a column with p = 0. This
// lower bound of p keeps the logarithm finite.
template <class T>
T bounded(T p) {
  return std::max(p, std::numeric_limits<T>::min());
}

template <class T>
void log_at(Cpu, Matrix<const T> p, const int32_t* at, T* y) {
  for (int64_t i = 0; i < p.rows; ++i) y[i] = at[i] < 0 ? T{0} : std::log(bounded(p.row(i)[at[i]]));
}

template <class T>
void log_at_grad(Cpu, Matrix<const T> p, const int32_t* at, const T* dy, Matrix<T> dp,
                 OutputMode fold) {
  if (fold == OutputMode::set) std::fill_n(dp.data, dp.size(), T{0});
  for (int64_t i = 0; i < p.rows; ++i)
    if (at[i] >= 0) dp.row(i)[at[i]] += dy[i] / bounded(p.row(i)[at[i]]);
}

template <class T>
void entropy(Cpu, Matrix<const T> p, T* y) {
  for (int64_t i = 0; i < p.rows; ++i) {
    T sum = 0;
    for (int64_t j = 0; j < p.cols; ++j)
      if (p.row(i)[j] > 0) sum -= p.row(i)[j] * std::log(p.row(i)[j]);
    y[i] = sum;
  }
}

template <class T>
void entropy_grad(Cpu, Matrix<const T> p, const T* dy, Matrix<T> dp, OutputMode fold) {
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t j = 0; j < p.cols; ++j) {
      const T at = p.row(i)[j];
      fold_into(dp.row(i)[j], fold, at > 0 ? -(std::log(at) + 1) * dy[i] : T{0});
    }
}

template <class T>
void copy_first(Cpu, Matrix<const T> from, const int32_t* lengths, Matrix<T> to, OutputMode fold) {
  for (int64_t i = 0; i < to.rows; ++i) {
    const int64_t n = std::min({from.cols, to.cols, int64_t{lengths[i]}});
    const T* in = from.row(i);
    fold_row(to.row(i), n, fold, [=](int64_t j) { return in[j]; });
    if (fold == OutputMode::set) std::fill(to.row(i) + n, to.row(i) + to.cols, T{0});
  }
}

template <class T>
void gaussian(Cpu, const T* p, double sigma, Matrix<T> y) {
  const T by = static_cast<T>(-0.5 / (sigma * sigma));
  for (int64_t i = 0; i < y.rows; ++i)
    for (int64_t j = 0; j < y.cols; ++j) {
      const T off = position<T>(j) - p[i];
      y.row(i)[j] = math::exp(by * off * off);
    }
}

template <class T>
void gaussian_grad(Cpu, const T* p, double sigma, Matrix<const T> y, Matrix<const T> dy, T* dp,
                   OutputMode fold) {
  const T by = static_cast<T>(1 / (sigma * sigma));
  for (int64_t i = 0; i < y.rows; ++i) {
    T sum = 0;
    for (int64_t j = 0; j < y.cols; ++j)
      sum += dy.row(i)[j] * y.row(i)[j] * (position<T>(j) - p[i]) * by;
    fold_into(dp[i], fold, sum);
  }
}

template <class T>
void mixture(Cpu, const WindowMixture<T>& in, Matrix<T> phi) {
  const int64_t K = in.kappa.cols;
  for (int64_t i = 0; i < phi.rows; ++i) {
    std::fill_n(phi.row(i), phi.cols, T{0});
    for (int64_t k = 0; k < K; ++k) {
      const T height = in.alpha_hat.row(i)[k], narrow = math::exp(in.beta_hat.row(i)[k]);
      for (int64_t j = 0; j < in.lengths[i]; ++j) {
        const T off = in.kappa.row(i)[k] - position<T>(j);
        phi.row(i)[j] += math::exp(height - narrow * off * off);
      }
    }
  }
}

template <class T>
void mixture_grad(Cpu, const WindowMixture<T>& in, Matrix<const T> dphi, Matrix<T> dalpha_hat,
                  Matrix<T> dbeta_hat, Matrix<T> dkappa) {
  const int64_t K = in.kappa.cols;
  for (int64_t i = 0; i < dphi.rows; ++i)
    for (int64_t k = 0; k < K; ++k) {
      const T height = in.alpha_hat.row(i)[k], narrow = math::exp(in.beta_hat.row(i)[k]);
      T dalpha = 0, dbeta = 0, dk = 0;
      for (int64_t j = 0; j < in.lengths[i]; ++j) {
        const T off = in.kappa.row(i)[k] - position<T>(j);
        const T g = dphi.row(i)[j] * math::exp(height - narrow * off * off);
        dalpha += g;
        dbeta -= g * narrow * off * off;
        dk -= 2 * g * narrow * off;
      }
      dalpha_hat.row(i)[k] = dalpha;
      dbeta_hat.row(i)[k] = dbeta;
      dkappa.row(i)[k] = dk;
    }
}

template <class T>
void uncovered(Cpu, Matrix<const T> covered, RangesIn ranges, Matrix<T> left) {
  std::fill_n(left.data, left.size(), T{0});
  for (int64_t i = 0; i < left.rows; ++i)
    for (int64_t j = ranges.low[i]; j < ranges.high[i]; ++j)
      left.row(i)[j] = 1 - std::min(T{1}, covered.row(i)[j]);
}

template <class T>
void uncovered_grad(Cpu, Matrix<const T> covered, RangesIn ranges, Matrix<const T> dleft,
                    Matrix<T> dcovered, OutputMode fold) {
  if (fold == OutputMode::set) std::fill_n(dcovered.data, dcovered.size(), T{0});
  for (int64_t i = 0; i < dleft.rows; ++i)
    for (int64_t j = ranges.low[i]; j < ranges.high[i]; ++j)
      if (covered.row(i)[j] < 1) dcovered.row(i)[j] -= dleft.row(i)[j];
}

namespace {

template <class T>
bool all_covered(const T* left, int64_t n) {
  return std::none_of(left, left + n, [](T v) { return static_cast<double>(v) > kMinUncovered; });
}

}  // namespace

template <class T>
void softmax_uncovered(Cpu, Matrix<const T> e, Matrix<const T> left, RangesIn ranges, Matrix<T> y) {
  std::fill_n(y.data, y.size(), T{0});
  for (int64_t i = 0; i < y.rows; ++i) {
    const int64_t low = ranges.low[i], high = ranges.high[i];
    const T *in = e.row(i), *rest = left.row(i);
    T* out = y.row(i);
    if (low >= high) continue;
    if (all_covered(rest + low, high - low)) {
      out[high - 1] = 1;
      continue;
    }
    T top = -std::numeric_limits<T>::infinity();  // maximum over uncovered columns, so that sum > 0
    for (int64_t j = low; j < high; ++j)
      if (rest[j] > 0) top = std::max(top, in[j]);
    double sum = 0;
    for (int64_t j = low; j < high; ++j) {
      out[j] = rest[j] > 0 ? rest[j] * math::exp(in[j] - top) : T{0};
      sum += static_cast<double>(out[j]);
    }
    for (int64_t j = low; j < high; ++j) out[j] = static_cast<T>(static_cast<double>(out[j]) / sum);
  }
}

template <class T>
void softmax_uncovered_grad(Cpu, Matrix<const T> y, Matrix<const T> left, Matrix<const T> dy,
                            const UncoveredGradients<T>& out) {
  for (int64_t i = 0; i < y.rows; ++i) {
    const bool fixed = all_covered(left.row(i), left.cols);
    T dot = 0;
    for (int64_t j = 0; j < y.cols; ++j) dot += y.row(i)[j] * dy.row(i)[j];
    for (int64_t j = 0; j < y.cols; ++j) {
      const T rest = left.row(i)[j];
      const T d = fixed || rest <= 0 ? T{0} : y.row(i)[j] * (dy.row(i)[j] - dot);
      if (out.de.data) fold_into(out.de.row(i)[j], out.fold_e, d);
      if (out.dleft.data) fold_into(out.dleft.row(i)[j], out.fold_left, rest > 0 ? d / rest : T{0});
    }
  }
}

#define FOVEA_INSTANTIATE(T)                                                                      \
  template void window_around(Cpu, Matrix<const T>, int64_t, RangesIn, RangesOut);                \
  template void argmax(Cpu, Matrix<const T>, RangesIn, int32_t*);                                 \
  template void draw(Cpu, Matrix<const T>, RangesIn, const Dropout&, int32_t*);                   \
  template void one_hot(Cpu, const int32_t*, Matrix<T>);                                          \
  template void log_at(Cpu, Matrix<const T>, const int32_t*, T*);                                 \
  template void log_at_grad(Cpu, Matrix<const T>, const int32_t*, const T*, Matrix<T>,            \
                            OutputMode);                                                          \
  template void entropy(Cpu, Matrix<const T>, T*);                                                \
  template void entropy_grad(Cpu, Matrix<const T>, const T*, Matrix<T>, OutputMode);              \
  template void copy_first(Cpu, Matrix<const T>, const int32_t*, Matrix<T>, OutputMode);          \
  template void gaussian(Cpu, const T*, double, Matrix<T>);                                       \
  template void gaussian_grad(Cpu, const T*, double, Matrix<const T>, Matrix<const T>, T*,        \
                              OutputMode);                                                        \
  template void mixture(Cpu, const WindowMixture<T>&, Matrix<T>);                                 \
  template void mixture_grad(Cpu, const WindowMixture<T>&, Matrix<const T>, Matrix<T>, Matrix<T>, \
                             Matrix<T>);                                                          \
  template void uncovered(Cpu, Matrix<const T>, RangesIn, Matrix<T>);                             \
  template void uncovered_grad(Cpu, Matrix<const T>, RangesIn, Matrix<const T>, Matrix<T>,        \
                               OutputMode);                                                       \
  template void softmax_uncovered(Cpu, Matrix<const T>, Matrix<const T>, RangesIn, Matrix<T>);    \
  template void softmax_uncovered_grad(Cpu, Matrix<const T>, Matrix<const T>, Matrix<const T>,    \
                                       const UncoveredGradients<T>&);
FOVEA_INSTANTIATE(float)
FOVEA_INSTANTIATE(double)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
