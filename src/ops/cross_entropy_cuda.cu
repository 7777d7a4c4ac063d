#include <algorithm>
#include <cfloat>

#include "ops/cross_entropy_kernel.h"
#include "tensor/cuda.h"
#include "tensor/pack.cuh"
#include "tensor/warp.cuh"

namespace fovea::kernel {
namespace {

// The number of entries that a thread loads at once, as packs of kWide adjacent entries.
constexpr int kBatch = 16;

// A row that a block reads in batches of kThreads · kBatch entries. In each batch, every thread has
// kPacks packs; its pack k begins at column(batch, k). If that column is past the end of the row,
// read() loads the last pack of the row instead, and write() stores nothing.
template <int kThreads, int kWide>
struct Batches {
  static constexpr int kPacks = kBatch / kWide;
  using Numbers = Pack<kWide>[kPacks];
  int cols, count;

  __device__ explicit Batches(int64_t columns)
      : cols(static_cast<int>(columns)),
        count((cols + kThreads * kBatch - 1) / (kThreads * kBatch)) {}
  __device__ int column(int batch, int k) const {
    return ((batch * kPacks + k) * kThreads + static_cast<int>(threadIdx.x)) * kWide;
  }
  template <class T>
  __device__ void read(const T* row, int batch, Numbers& z) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      z[k] = load<kWide>(row + std::min(column(batch, k), cols - kWide));
  }
  template <class T>
  __device__ void write(T* row, int batch, const Numbers& z) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      if (column(batch, k) < cols) store(row + column(batch, k), z[k]);
  }
  // Calls body(number, its column) for this thread's numbers of a batch, including columns past the
  // end.
  template <class Body>
  __device__ void each(int batch, Numbers& z, Body body) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int w = 0; w < kWide; ++w) body(z[k].at[w], column(batch, k) + w);
  }
};

// One thread's sums over its entries z of a row: top (largest z), Σ exp(z − top) and Σ z.
struct RowSums {
  float top = -FLT_MAX, exponentials = 0, logits = 0;

  template <int kThreads, int kWide>
  __device__ void add(const Batches<kThreads, kWide>& batches, int batch,
                      typename Batches<kThreads, kWide>::Numbers& z, int words) {
    const float before = top;
    batches.each(batch, z, [&](float& x, int j) { top = fmaxf(top, j < words ? x : -FLT_MAX); });
    exponentials *= expf(before - top);
    batches.each(batch, z, [&](float& x, int j) {
      exponentials += j < words ? expf(x - top) : 0;
      logits += j < words ? x : 0;
    });
  }
};

// The results per row, see cross_entropy_kernel.h.
struct Losses {
  float *loss, *log_likelihood;
};

template <class Out>
struct GradientOutput {
  const float* scale;
  Matrix<Out> dlogits;
  OutputMode fold;

  __device__ bool adds() const {  // bf16 gradients are always set, never added to
    return std::is_same_v<Out, float> && fold == OutputMode::add;
  }
};

// The gradient of each logit z of a row is by · exp(z − top) − less. For the label's column,
// at_label is subtracted from it, too.
struct GradientFactors {
  float top, by, less, at_label;
  int label, words;
};

// Writes the gradient of a row. Begins at the end of the row, because the caches still hold that
// end.
template <int kThreads, int kWide, class T, class Out>
__device__ void gradient_of_row(const T* row, const GradientFactors& factors,
                                const GradientOutput<Out>& gradient, Out* to,
                                const Batches<kThreads, kWide>& batches) {
  typename Batches<kThreads, kWide>::Numbers z, old;
  for (int batch = batches.count - 1; batch >= 0; --batch) {
    batches.read(row, batch, z);
    batches.each(batch, z, [&](float& x, int j) {
      x = factors.by * expf(x - factors.top) - factors.less -
          (j == factors.label ? factors.at_label : 0.0f);
      if (j >= factors.words) x = 0;
    });
    if (gradient.adds()) {
      batches.read(to, batch, old);
#pragma unroll
      for (int k = 0; k < batches.kPacks; ++k)
#pragma unroll
        for (int w = 0; w < kWide; ++w) z[k].at[w] += old[k].at[w];
    }
    batches.write(to, batch, z);
  }
}

// A block processes one row. It reads the row once for the loss and once for the gradient.
template <int kThreads, int kWide, class T, class Out>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_rows(LabelledLogits<T> in, Losses out, GradientOutput<Out> gradient) {
  const Batches<kThreads, kWide> batches(in.logits.cols);
  typename Batches<kThreads, kWide>::Numbers z = {};
  const int64_t i = blockIdx.x;
  const int label = in.labels[i], words = static_cast<int>(in.words);
  const T* row = in.logits.row(i);
  Out* to = gradient.dlogits.data ? gradient.dlogits.row(i) : nullptr;
  if (label < 0) {
    if (threadIdx.x == 0) out.loss[i] = out.log_likelihood[i] = 0;
    if (!to || gradient.adds()) return;
    for (int batch = 0; batch < batches.count; ++batch) batches.write(to, batch, z);
    return;
  }

  RowSums sums;
  for (int batch = 0; batch < batches.count; ++batch) {
    batches.read(row, batch, z);
    sums.add(batches, batch, z, words);
  }
  const float top = across_block(sums.top, WarpMax{}, -FLT_MAX);
  const float sum = across_block(sums.exponentials * expf(sums.top - top), WarpSum{}, 0.0f);
  const float total = across_block(sums.logits, WarpSum{}, 0.0f);
  const float smooth = static_cast<float>(in.smoothing);
  const float each = smooth / static_cast<float>(words);
  if (threadIdx.x == 0) {
    const float log_exponentials = logf(sum), log_sum = top + log_exponentials;
    const float hit = load<1>(row + label).at[0];
    // This order of operations stays accurate if the probability of the label is nearly 1.
    out.log_likelihood[i] = (hit - top) - log_exponentials;
    out.loss[i] = log_sum - (1 - smooth) * hit - each * total;  // −Σ_v q_v (z_v − log Σ exp z)
  }
  if (!to) return;
  const float scale = gradient.scale ? *gradient.scale : 1.0f;
  gradient_of_row(row, {top, scale / sum, scale * each, scale * (1 - smooth), label, words},
                  gradient, to, batches);
}

template <int kWide, class T, class Out>
void launch(Cuda on, const LabelledLogits<T>& in, const Losses& out,
            const GradientOutput<Out>& gradient) {
  const unsigned rows = blocks_for(in.logits.rows, 1);
  if (in.logits.cols > 4096)
    cross_entropy_rows<512, kWide><<<rows, 512, 0, stream(on)>>>(in, out, gradient);
  else
    cross_entropy_rows<128, kWide><<<rows, 128, 0, stream(on)>>>(in, out, gradient);
  check_launch("cross_entropy");
}

}  // namespace

template <class T, class Out>
void cross_entropy_grad(Cuda on, const LabelledLogits<T>& in, const SumType<T>* scale,
                        SumType<T>* losses, SumType<T>* log_likelihood, Matrix<Out> dlogits,
                        OutputMode fold) {
  constexpr int kWide = 16 / sizeof(T);
  if (in.logits.size() == 0) return;
  const GradientOutput<Out> gradient{scale, dlogits, fold};
  if (in.logits.cols % kWide == 0 && at_packs<kWide>(in.logits.data, dlogits.data))
    launch<kWide>(on, in, {losses, log_likelihood}, gradient);
  else
    launch<1>(on, in, {losses, log_likelihood}, gradient);
}

template <class T>
void cross_entropy(Cuda on, const LabelledLogits<T>& in, SumType<T>* losses,
                   SumType<T>* log_likelihood) {
  cross_entropy_grad<T, T>(on, in, nullptr, losses, log_likelihood, {}, OutputMode::set);
}

template void cross_entropy(Cuda, const LabelledLogits<float>&, float*, float*);
template void cross_entropy_grad(Cuda, const LabelledLogits<float>&, const float*, float*, float*,
                                 Matrix<float>, OutputMode);
template void cross_entropy_grad(Cuda, const LabelledLogits<bf16>&, const float*, float*, float*,
                                 Matrix<bf16>, OutputMode);

}  // namespace fovea::kernel
