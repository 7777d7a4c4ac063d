#include <cuda_bf16.h>

#include <algorithm>
#include <cfloat>

#include "ops/cross_entropy_kernel.h"
#include "ops/warp.cuh"
#include "tensor/cuda.h"

namespace fovea::kernel {
namespace {

// Numbers that a thread has on their way at once, in packs of kWidth.
constexpr int kBatch = 16;

template <int kWidth>
__device__ void load(const float* from, float (&to)[kWidth]) {
  if constexpr (kWidth == 4) {
    const float4 four = *reinterpret_cast<const float4*>(from);
    to[0] = four.x, to[1] = four.y, to[2] = four.z, to[3] = four.w;
  } else {
    to[0] = *from;
  }
}

template <int kWidth>
__device__ void store(float* to, const float (&from)[kWidth]) {
  if constexpr (kWidth == 4)
    *reinterpret_cast<float4*>(to) = {from[0], from[1], from[2], from[3]};
  else
    *to = from[0];
}
template <int kWidth>
__device__ void store(bf16* to, const float (&from)[kWidth]) {
  if constexpr (kWidth == 4) {
    const __nv_bfloat162 low = __floats2bfloat162_rn(from[0], from[1]);
    const __nv_bfloat162 high = __floats2bfloat162_rn(from[2], from[3]);
    *reinterpret_cast<uint2*>(to) = {*reinterpret_cast<const unsigned*>(&low),
                                     *reinterpret_cast<const unsigned*>(&high)};
  } else {
    to->bits = __bfloat16_as_ushort(__float2bfloat16_rn(from[0]));
  }
}

// What a thread knows of a row so far: its largest logit, Σ exp(z − top), and Σ z.
struct Tally {
  float top = -FLT_MAX, exponentials = 0, logits = 0;

  template <int kPacks, int kWidth>
  __device__ void take(const float (&z)[kPacks][kWidth], int packs) {
    const float before = top;
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int w = 0; w < kWidth; ++w) top = fmaxf(top, k < packs ? z[k][w] : -FLT_MAX);
    exponentials *= expf(before - top);
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
#pragma unroll
      for (int w = 0; w < kWidth; ++w) {
        exponentials += k < packs ? expf(z[k][w] - top) : 0;
        logits += k < packs ? z[k][w] : 0;
      }
  }
};

// A row of `packs` packs in batches: pack k of a batch is the thread's pack number pack(batch, k),
// where the row is that long. Past its end the last pack is read and nothing is written.
template <int kThreads, int kWidth>
struct Batches {
  static constexpr int kPacks = kBatch / kWidth;
  using Numbers = float[kPacks][kWidth];
  int packs, count;

  __device__ explicit Batches(int64_t cols)
      : packs(static_cast<int>(cols / kWidth)),
        count((packs + kThreads * kPacks - 1) / (kThreads * kPacks)) {}
  __device__ int pack(int batch, int k) const {
    return (batch * kPacks + k) * kThreads + static_cast<int>(threadIdx.x);
  }
  __device__ int own(int batch) const {  // packs of this batch that the row has for this thread
    return (packs - pack(batch, 0) + kThreads - 1) / kThreads;
  }
  __device__ void read(const float* row, int batch, Numbers& z) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      load(row + int64_t{std::min(pack(batch, k), packs - 1)} * kWidth, z[k]);
  }
  template <class Out>
  __device__ void write(Out* row, int batch, const Numbers& z) const {
#pragma unroll
    for (int k = 0; k < kPacks; ++k)
      if (pack(batch, k) < packs) store(row + int64_t{pack(batch, k)} * kWidth, z[k]);
  }
};

struct Losses {
  float *loss, *log_likelihood;
};

template <class Out>
struct Slope {
  const float* scale;
  Matrix<Out> dlogits;
  Fold fold;

  __device__ bool adds() const {  // bf16 is always set
    return std::is_same_v<Out, float> && fold == Fold::add;
  }
};

// What the gradient of a row is computed from: by · exp(z − top) − less, at the label less still.
struct Pull {
  float top, by, less, at_label;
  int label;
};

// Begins at the end of the row: that is what the caches still have of it.
template <int kThreads, int kWidth, class Out>
__device__ void pull_row(const float* row, const Pull& pull, const Slope<Out>& slope, Out* to,
                         const Batches<kThreads, kWidth>& batches) {
  typename Batches<kThreads, kWidth>::Numbers z;
  for (int batch = batches.count - 1; batch >= 0; --batch) {
    batches.read(row, batch, z);
#pragma unroll
    for (int k = 0; k < batches.kPacks; ++k)
#pragma unroll
      for (int w = 0; w < kWidth; ++w)
        z[k][w] = pull.by * expf(z[k][w] - pull.top) - pull.less -
                  (batches.pack(batch, k) * kWidth + w == pull.label ? pull.at_label : 0.0f);
    if constexpr (std::is_same_v<Out, float>) {
      if (slope.adds()) {
        typename Batches<kThreads, kWidth>::Numbers old;
        batches.read(to, batch, old);
#pragma unroll
        for (int k = 0; k < batches.kPacks; ++k)
#pragma unroll
          for (int w = 0; w < kWidth; ++w) z[k][w] += old[k][w];
      }
    }
    batches.write(to, batch, z);
  }
}

// A block per row, which is read once for the loss and once for the gradient.
template <int kThreads, int kWidth, class Out>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_rows(Labelled<float> in, Losses out, Slope<Out> slope) {
  const Batches<kThreads, kWidth> batches(in.logits.cols);
  typename Batches<kThreads, kWidth>::Numbers z = {};
  const int64_t i = blockIdx.x;
  const int label = in.labels[i];
  const float* row = in.logits.row(i);
  Out* to = slope.dlogits.data ? slope.dlogits.row(i) : nullptr;
  if (label < 0) {
    if (threadIdx.x == 0) out.loss[i] = out.log_likelihood[i] = 0;
    if (!to || slope.adds()) return;
    for (int batch = 0; batch < batches.count; ++batch) batches.write(to, batch, z);
    return;
  }

  Tally tally;
  for (int batch = 0; batch < batches.count; ++batch) {
    batches.read(row, batch, z);
    tally.take(z, batches.own(batch));
  }
  const float top = across_block(tally.top, Larger{}, -FLT_MAX);
  const float sum = across_block(tally.exponentials * expf(tally.top - top), Sum{}, 0.0f);
  const float total = across_block(tally.logits, Sum{}, 0.0f);
  const float smooth = static_cast<float>(in.smoothing);
  const float each = smooth / static_cast<float>(in.logits.cols);
  if (threadIdx.x == 0) {
    const float log_sum = top + logf(sum), hit = row[label];
    out.log_likelihood[i] = hit - log_sum;
    out.loss[i] = log_sum - (1 - smooth) * hit - each * total;  // −Σ_v q_v (z_v − log Σ exp z)
  }
  if (!to) return;
  const float scale = slope.scale ? *slope.scale : 1.0f;
  pull_row(row, {top, scale / sum, scale * each, scale * (1 - smooth), label}, slope, to, batches);
}

template <int kWidth, class Out>
void launch(Cuda on, const Labelled<float>& in, const Losses& out, const Slope<Out>& slope) {
  const unsigned rows = blocks_for(in.logits.rows, 1);
  if (in.logits.cols > 4096)
    cross_entropy_rows<512, kWidth><<<rows, 512, 0, stream(on)>>>(in, out, slope);
  else
    cross_entropy_rows<128, kWidth><<<rows, 128, 0, stream(on)>>>(in, out, slope);
  check_launch("cross_entropy");
}

}  // namespace

template <class T, class Out>
void cross_entropy_grad(Cuda on, const Labelled<T>& in, const T* scale, T* losses,
                        T* log_likelihood, Matrix<Out> dlogits, Fold fold) {
  if (in.logits.size() == 0) return;
  const Slope<Out> slope{scale, dlogits, fold};
  const uintptr_t address =
      reinterpret_cast<uintptr_t>(in.logits.data) | reinterpret_cast<uintptr_t>(dlogits.data);
  if (in.logits.cols % 4 == 0 && address % 16 == 0)
    launch<4>(on, in, {losses, log_likelihood}, slope);
  else
    launch<1>(on, in, {losses, log_likelihood}, slope);
}

template <class T>
void cross_entropy(Cuda on, const Labelled<T>& in, T* losses, T* log_likelihood) {
  cross_entropy_grad<T, T>(on, in, nullptr, losses, log_likelihood, {}, Fold::set);
}

template void cross_entropy(Cuda, const Labelled<float>&, float*, float*);
template void cross_entropy_grad(Cuda, const Labelled<float>&, const float*, float*, float*,
                                 Matrix<float>, Fold);
template void cross_entropy_grad(Cuda, const Labelled<float>&, const float*, float*, float*,
                                 Matrix<bf16>, Fold);

}  // namespace fovea::kernel
