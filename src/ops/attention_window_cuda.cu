#include <cfloat>
#include <climits>

#include "base/random.h"
#include "ops/attention_window_kernel.h"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

// Rows are short (a sentence). If the columns of a row are independent of each other, a warp
// computes the row. If the result is one value or depends on the order of the columns, one thread
// computes it.
namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / kWarp;
constexpr double kMinUncovered = 1e-6;

template <class Body>
__global__ void by_threads(int64_t rows, Body body) {
  const int64_t i = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < rows) body(i);
}

template <class Body>
__global__ void by_warps(int64_t rows, Body body) {
  const int64_t i = int64_t{blockIdx.x} * kWarps + threadIdx.y;
  if (i < rows) body(i, int64_t{threadIdx.x});
}

// Calls body(row) in one thread per row.
template <class Body>
void each_row(Cuda on, int64_t rows, const char* name, const Body& body) {
  if (rows == 0) return;
  by_threads<<<blocks_for(rows, kThreads), kThreads, 0, stream(on)>>>(rows, body);
  check_launch(name);
}

// Calls body(row, lane) in one warp per row. The lane computes the columns lane, lane + kWarp, …
template <class Body>
void each_row_in_warps(Cuda on, int64_t rows, const char* name, const Body& body) {
  if (rows == 0) return;
  by_warps<<<blocks_for(rows, kWarps), dim3(kWarp, kWarps), 0, stream(on)>>>(rows, body);
  check_launch(name);
}

__device__ float position(int64_t column) { return static_cast<float>(column + 1); }

struct FullRange {
  RaggedIndex ragged;
  int64_t reach;
  RangesOut out;
  __device__ void operator()(int64_t i) const {
    const int64_t words = ragged.words(i);
    out.low[i] = 0;
    out.high[i] = static_cast<int32_t>(reach < 0 || words < reach ? words : reach);
  }
};

struct WindowAround {
  Matrix<const float> p;
  int64_t D;
  RangesIn within;
  RangesOut out;
  __device__ void operator()(int64_t i) const {
    const int64_t middle = static_cast<int64_t>(floorf(*p.row(i) + 0.5f)) - 1;
    const int64_t low = max(int64_t{within.low[i]}, middle - D);
    const int64_t high = min(int64_t{within.high[i]}, middle + D + 1);
    out.low[i] = static_cast<int32_t>(low);
    out.high[i] = static_cast<int32_t>(max(low, high));
  }
};

struct RangeFrom {
  const int32_t* from;
  int64_t slack;
  RangesIn within;
  RangesOut out;
  __device__ void operator()(int64_t i) const {
    out.low[i] = static_cast<int32_t>(max(int64_t{within.low[i]}, from[i] - slack));
    out.high[i] = within.high[i];
  }
};

struct Argmax {
  Matrix<const float> x;
  RangesIn ranges;
  int32_t* at;
  __device__ void operator()(int64_t i, int64_t lane) const {
    const int low = ranges.low[i], high = ranges.high[i];
    const float* in = x.row(i);
    float best = -INFINITY;
    int column = INT_MAX;  // INT_MAX: no column found yet
    for (int j = low + static_cast<int>(lane); j < high; j += kWarp)
      if (in[j] > best || (column == INT_MAX && in[j] == in[j])) {
        best = in[j];
        column = j;
      }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(~0u, best, step);
      const int other_column = __shfl_xor_sync(~0u, column, step);
      const bool better = other > best || (other == best && other_column < column);
      best = better ? other : best;
      column = better ? other_column : column;
    }
    if (lane > 0) return;
    const bool undefined = low < high && in[low] != in[low];  // NaN: no entry is larger
    at[i] = low >= high ? -1 : undefined ? low : column;
  }
};

struct Draw {
  Matrix<const float> p;
  RangesIn ranges;
  Dropout key;
  int32_t* at;

  // A random number in [0, 1) for one row. The constant in the key makes it independent of other
  // random numbers from the same seed.
  __device__ double uniform(int64_t row) const {
    const uint32_t step = key.step_at ? static_cast<uint32_t>(*key.step_at) : key.step;
    const PhiloxCounter bits = philox(
        {{static_cast<uint32_t>(row), static_cast<uint32_t>(row >> 32), step, key.op}},
        {{static_cast<uint32_t>(key.seed) ^ 0x64726177u, static_cast<uint32_t>(key.seed >> 32)}});
    return static_cast<double>((uint64_t{bits.v[0]} << 21) ^ (bits.v[1] >> 11)) * 0x1p-53;
  }
  __device__ void operator()(int64_t i) const {
    const float* in = p.row(i);
    double total = 0, sum = 0;
    for (int j = ranges.low[i]; j < ranges.high[i]; ++j) total += static_cast<double>(in[j]);
    const double wanted = uniform(i) * total;
    int chosen = -1;
    for (int j = ranges.low[i]; j < ranges.high[i] && sum <= wanted; ++j) {
      sum += static_cast<double>(in[j]);
      if (in[j] > 0) chosen = j;
    }
    at[i] = chosen;
  }
};

struct OneHot {
  const int32_t* at;
  Matrix<float> y;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < y.cols; j += kWarp) y.row(i)[j] = j == at[i] ? 1.0f : 0.0f;
  }
};

// A sampled column has a positive probability, but a caller may pass a column with p = 0. This
// lower bound of p keeps the logarithm finite.
__device__ float bounded(float p) { return p < FLT_MIN ? FLT_MIN : p; }

struct LogAt {
  Matrix<const float> p;
  const int32_t* at;
  float* y;
  __device__ void operator()(int64_t i) const {
    y[i] = at[i] < 0 ? 0.0f : logf(bounded(p.row(i)[at[i]]));
  }
};

struct LogAtGrad {
  Matrix<const float> p;
  const int32_t* at;
  const float* dy;
  Matrix<float> dp;
  OutputMode fold;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < dp.cols; j += kWarp)
      fold_into(dp.row(i)[j], fold, j == at[i] ? dy[i] / bounded(p.row(i)[j]) : 0.0f);
  }
};

struct Entropy {
  Matrix<const float> p;
  float* y;
  __device__ void operator()(int64_t i, int64_t lane) const {
    float sum = 0;
    for (int64_t j = lane; j < p.cols; j += kWarp) {
      const float at = p.row(i)[j];
      if (at > 0) sum -= at * logf(at);
    }
    sum = across_warp(sum, WarpSum{});
    if (lane == 0) y[i] = sum;
  }
};

struct EntropyGrad {
  Matrix<const float> p;
  const float* dy;
  Matrix<float> dp;
  OutputMode fold;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < p.cols; j += kWarp) {
      const float at = p.row(i)[j];
      fold_into(dp.row(i)[j], fold, at > 0 ? -(logf(at) + 1) * dy[i] : 0.0f);
    }
  }
};

struct CopyFirst {
  Matrix<const float> from;
  const int32_t* lengths;
  Matrix<float> to;
  OutputMode fold;
  __device__ void operator()(int64_t i, int64_t lane) const {
    const int64_t n = min(min(from.cols, to.cols), int64_t{lengths[i]});
    for (int64_t j = lane; j < to.cols; j += kWarp)
      if (j < n)
        fold_into(to.row(i)[j], fold, from.row(i)[j]);
      else if (fold == OutputMode::set)
        to.row(i)[j] = 0;
  }
};

struct Gaussian {
  const float* p;
  float by;
  Matrix<float> y;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < y.cols; j += kWarp) {
      const float off = position(j) - p[i];
      y.row(i)[j] = expf(by * off * off);
    }
  }
};

struct GaussianGrad {
  const float* p;
  float by;
  Matrix<const float> y, dy;
  float* dp;
  OutputMode fold;
  __device__ void operator()(int64_t i, int64_t lane) const {
    float sum = 0;
    for (int64_t j = lane; j < y.cols; j += kWarp)
      sum += dy.row(i)[j] * y.row(i)[j] * (position(j) - p[i]) * by;
    sum = across_warp(sum, WarpSum{});
    if (lane == 0) fold_into(dp[i], fold, sum);
  }
};

struct Mixture {
  WindowMixture<float> in;
  Matrix<float> phi;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < phi.cols; j += kWarp) {
      float sum = 0;
      for (int64_t k = 0; j < in.lengths[i] && k < in.kappa.cols; ++k) {
        const float off = in.kappa.row(i)[k] - position(j);
        sum += expf(in.alpha_hat.row(i)[k] - expf(in.beta_hat.row(i)[k]) * off * off);
      }
      phi.row(i)[j] = sum;
    }
  }
};

// The gradient of mixture(). Each warp computes it for one Gaussian of one row.
struct MixtureGrad {
  WindowMixture<float> in;
  Matrix<const float> dphi;
  Matrix<float> dalpha_hat, dbeta_hat, dkappa;
  __device__ void operator()(int64_t at, int64_t lane) const {
    const int64_t i = at / in.kappa.cols;
    const float height = in.alpha_hat.data[at], narrow = expf(in.beta_hat.data[at]);
    float dalpha = 0, dbeta = 0, dk = 0;
    for (int64_t j = lane; j < in.lengths[i]; j += kWarp) {
      const float off = in.kappa.data[at] - position(j);
      const float g = dphi.row(i)[j] * expf(height - narrow * off * off);
      dalpha += g;
      dbeta -= g * narrow * off * off;
      dk -= 2 * g * narrow * off;
    }
    dalpha = across_warp(dalpha, WarpSum{});
    dbeta = across_warp(dbeta, WarpSum{});
    dk = across_warp(dk, WarpSum{});
    if (lane > 0) return;
    dalpha_hat.data[at] = dalpha;
    dbeta_hat.data[at] = dbeta;
    dkappa.data[at] = dk;
  }
};

struct UncoveredPart {
  Matrix<const float> covered;
  RangesIn ranges;
  Matrix<float> left;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < left.cols; j += kWarp) {
      const bool open = j >= ranges.low[i] && j < ranges.high[i] && covered.row(i)[j] < 1;
      left.row(i)[j] = open ? 1 - covered.row(i)[j] : 0.0f;
    }
  }
};

struct UncoveredPartGrad {
  Matrix<const float> covered;
  RangesIn ranges;
  Matrix<const float> dleft;
  Matrix<float> dcovered;
  OutputMode fold;
  __device__ void operator()(int64_t i, int64_t lane) const {
    for (int64_t j = lane; j < dleft.cols; j += kWarp) {
      const bool open = j >= ranges.low[i] && j < ranges.high[i] && covered.row(i)[j] < 1;
      fold_into(dcovered.row(i)[j], fold, open ? -dleft.row(i)[j] : 0.0f);
    }
  }
};

// Whether left[j] ≤ kMinUncovered for all columns j in [low, high), that is, all are covered. Every
// lane gets the result.
__device__ bool all_covered(const float* left, int64_t low, int64_t high, int64_t lane) {
  bool some = false;
  for (int64_t j = low + lane; j < high; j += kWarp)
    some |= static_cast<double>(left[j]) > kMinUncovered;
  return !__any_sync(~0u, some);
}

struct SoftmaxUncovered {
  Matrix<const float> e, left;
  RangesIn ranges;
  Matrix<float> y;
  __device__ void operator()(int64_t i, int64_t lane) const {
    const int64_t low = ranges.low[i], high = ranges.high[i];
    const float *in = e.row(i), *rest = left.row(i);
    float* out = y.row(i);
    if (all_covered(rest, low, high, lane)) {
      for (int64_t j = lane; j < y.cols; j += kWarp)
        out[j] = low < high && j == high - 1 ? 1.0f : 0.0f;
      return;
    }
    float top = -INFINITY;  // maximum over uncovered columns, so that the sum is never 0
    for (int64_t j = low + lane; j < high; j += kWarp)
      if (rest[j] > 0) top = fmaxf(top, in[j]);
    top = across_warp(top, WarpMax{});
    auto share = [&](int64_t j) { return rest[j] > 0 ? rest[j] * expf(in[j] - top) : 0.0f; };
    double sum = 0;
    for (int64_t j = low + lane; j < high; j += kWarp) sum += static_cast<double>(share(j));
    sum = across_warp(sum, WarpSum{});
    for (int64_t j = lane; j < y.cols; j += kWarp)
      out[j] = j >= low && j < high ? static_cast<float>(static_cast<double>(share(j)) / sum) : 0;
  }
};

struct SoftmaxUncoveredGrad {
  Matrix<const float> y, left, dy;
  UncoveredGradients<float> out;
  __device__ void operator()(int64_t i, int64_t lane) const {
    const bool fixed = all_covered(left.row(i), 0, left.cols, lane);
    float dot = 0;
    for (int64_t j = lane; j < y.cols; j += kWarp) dot += y.row(i)[j] * dy.row(i)[j];
    dot = across_warp(dot, WarpSum{});
    for (int64_t j = lane; j < y.cols; j += kWarp) {
      const float rest = left.row(i)[j];
      const float d = fixed || rest <= 0 ? 0.0f : y.row(i)[j] * (dy.row(i)[j] - dot);
      if (out.de.data) fold_into(out.de.row(i)[j], out.fold_e, d);
      if (out.dleft.data) fold_into(out.dleft.row(i)[j], out.fold_left, rest > 0 ? d / rest : 0.0f);
    }
  }
};

}  // namespace

void full_range(Cuda on, const RaggedIndex& ragged, int64_t reach, RangesOut out) {
  each_row(on, ragged.queries, "full_range", FullRange{ragged, reach, out});
}
template <class T>
void window_around(Cuda on, Matrix<const T> p, int64_t D, RangesIn within, RangesOut out) {
  each_row(on, p.rows, "window_around", WindowAround{p, D, within, out});
}
void range_from(Cuda on, const int32_t* from, int64_t rows, int64_t slack, RangesIn within,
                RangesOut out) {
  each_row(on, rows, "range_from", RangeFrom{from, slack, within, out});
}

template <class T>
void argmax(Cuda on, Matrix<const T> x, RangesIn ranges, int32_t* at) {
  each_row_in_warps(on, x.rows, "argmax", Argmax{x, ranges, at});
}
template <class T>
void draw(Cuda on, Matrix<const T> p, RangesIn ranges, const Dropout& key, int32_t* at) {
  each_row(on, p.rows, "draw", Draw{p, ranges, key, at});
}
template <class T>
void one_hot(Cuda on, const int32_t* at, Matrix<T> y) {
  each_row_in_warps(on, y.rows, "one_hot", OneHot{at, y});
}

template <class T>
void log_at(Cuda on, Matrix<const T> p, const int32_t* at, T* y) {
  each_row(on, p.rows, "log_at", LogAt{p, at, y});
}
template <class T>
void log_at_grad(Cuda on, Matrix<const T> p, const int32_t* at, const T* dy, Matrix<T> dp,
                 OutputMode fold) {
  each_row_in_warps(on, p.rows, "log_at_grad", LogAtGrad{p, at, dy, dp, fold});
}
template <class T>
void entropy(Cuda on, Matrix<const T> p, T* y) {
  each_row_in_warps(on, p.rows, "entropy", Entropy{p, y});
}
template <class T>
void entropy_grad(Cuda on, Matrix<const T> p, const T* dy, Matrix<T> dp, OutputMode fold) {
  each_row_in_warps(on, p.rows, "entropy_grad", EntropyGrad{p, dy, dp, fold});
}

template <class T>
void copy_first(Cuda on, Matrix<const T> from, const int32_t* lengths, Matrix<T> to,
                OutputMode fold) {
  each_row_in_warps(on, to.rows, "copy_first", CopyFirst{from, lengths, to, fold});
}

template <class T>
void gaussian(Cuda on, const T* p, double sigma, Matrix<T> y) {
  each_row_in_warps(on, y.rows, "gaussian",
                    Gaussian{p, static_cast<float>(-0.5 / (sigma * sigma)), y});
}
template <class T>
void gaussian_grad(Cuda on, const T* p, double sigma, Matrix<const T> y, Matrix<const T> dy, T* dp,
                   OutputMode fold) {
  each_row_in_warps(on, y.rows, "gaussian_grad",
                    GaussianGrad{p, static_cast<float>(1 / (sigma * sigma)), y, dy, dp, fold});
}

template <class T>
void mixture(Cuda on, const WindowMixture<T>& in, Matrix<T> phi) {
  each_row_in_warps(on, phi.rows, "mixture", Mixture{in, phi});
}
template <class T>
void mixture_grad(Cuda on, const WindowMixture<T>& in, Matrix<const T> dphi, Matrix<T> dalpha_hat,
                  Matrix<T> dbeta_hat, Matrix<T> dkappa) {
  each_row_in_warps(on, in.kappa.size(), "mixture_grad",
                    MixtureGrad{in, dphi, dalpha_hat, dbeta_hat, dkappa});
}

template <class T>
void uncovered(Cuda on, Matrix<const T> covered, RangesIn ranges, Matrix<T> left) {
  each_row_in_warps(on, left.rows, "uncovered", UncoveredPart{covered, ranges, left});
}
template <class T>
void uncovered_grad(Cuda on, Matrix<const T> covered, RangesIn ranges, Matrix<const T> dleft,
                    Matrix<T> dcovered, OutputMode fold) {
  each_row_in_warps(on, dleft.rows, "uncovered_grad",
                    UncoveredPartGrad{covered, ranges, dleft, dcovered, fold});
}
template <class T>
void softmax_uncovered(Cuda on, Matrix<const T> e, Matrix<const T> left, RangesIn ranges,
                       Matrix<T> y) {
  each_row_in_warps(on, y.rows, "softmax_uncovered", SoftmaxUncovered{e, left, ranges, y});
}
template <class T>
void softmax_uncovered_grad(Cuda on, Matrix<const T> y, Matrix<const T> left, Matrix<const T> dy,
                            const UncoveredGradients<T>& out) {
  each_row_in_warps(on, y.rows, "softmax_uncovered_grad", SoftmaxUncoveredGrad{y, left, dy, out});
}

#define FOVEA_INSTANTIATE(T)                                                                       \
  template void window_around(Cuda, Matrix<const T>, int64_t, RangesIn, RangesOut);                \
  template void argmax(Cuda, Matrix<const T>, RangesIn, int32_t*);                                 \
  template void draw(Cuda, Matrix<const T>, RangesIn, const Dropout&, int32_t*);                   \
  template void one_hot(Cuda, const int32_t*, Matrix<T>);                                          \
  template void log_at(Cuda, Matrix<const T>, const int32_t*, T*);                                 \
  template void log_at_grad(Cuda, Matrix<const T>, const int32_t*, const T*, Matrix<T>,            \
                            OutputMode);                                                           \
  template void entropy(Cuda, Matrix<const T>, T*);                                                \
  template void entropy_grad(Cuda, Matrix<const T>, const T*, Matrix<T>, OutputMode);              \
  template void copy_first(Cuda, Matrix<const T>, const int32_t*, Matrix<T>, OutputMode);          \
  template void gaussian(Cuda, const T*, double, Matrix<T>);                                       \
  template void gaussian_grad(Cuda, const T*, double, Matrix<const T>, Matrix<const T>, T*,        \
                              OutputMode);                                                         \
  template void mixture(Cuda, const WindowMixture<T>&, Matrix<T>);                                 \
  template void mixture_grad(Cuda, const WindowMixture<T>&, Matrix<const T>, Matrix<T>, Matrix<T>, \
                             Matrix<T>);                                                           \
  template void uncovered(Cuda, Matrix<const T>, RangesIn, Matrix<T>);                             \
  template void uncovered_grad(Cuda, Matrix<const T>, RangesIn, Matrix<const T>, Matrix<T>,        \
                               OutputMode);                                                        \
  template void softmax_uncovered(Cuda, Matrix<const T>, Matrix<const T>, RangesIn, Matrix<T>);    \
  template void softmax_uncovered_grad(Cuda, Matrix<const T>, Matrix<const T>, Matrix<const T>,    \
                                       const UncoveredGradients<T>&);
FOVEA_INSTANTIATE(float)
#undef FOVEA_INSTANTIATE

}  // namespace fovea::kernel
