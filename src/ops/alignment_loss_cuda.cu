#include <cmath>

#include "ops/alignment_loss_kernel.h"
#include "ops/quad.cuh"
#include "tensor/cuda.h"
#include "tensor/warp.cuh"

// A warp computes the loss or the gradient of one row. The warp has four groups of eight lanes.
// Each group multiplies the row by every fourth row of the other matrix. A quad is four adjacent
// columns. Lane x of a group holds the quads x, x + 8, x + 16, … of a row.
namespace fovea::kernel {
namespace {

constexpr int kLanes = 8, kGroups = kWarp / kLanes, kWarps = 8;

struct LossArgs {
  AlignmentLossInput<float> in;
  const float *scale, *log_sums;
  float by;  // factor of the scores, 1 / √d_k
  bool aligned;

  __device__ float scaled() const { return by * (scale ? *scale : 1); }
};

// The row that this warp computes, and this lane's group and index x within the group.
struct LanePosition {
  int row, group, x;
  __device__ LanePosition()
      : row(static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp)),
        group(static_cast<int>(threadIdx.x) % kWarp / kLanes),
        x(static_cast<int>(threadIdx.x) % kLanes) {}
  __device__ bool is_first() const { return group == 0 && x == 0; }
};

// The quads of a row that one lane holds.
template <int kCols>
struct QuadRow {
  static constexpr int kQuads = kCols / (4 * kLanes);
  float4 quads[kQuads] = {};

  QuadRow() = default;
  // Loads this lane's quads of a row, or zeros if the row is not `present`.
  __device__ QuadRow(const LanePosition& at, Matrix<const float> from, int64_t row, bool present,
                     bool aligned) {
#pragma unroll
    for (int c = 0; c < kQuads; ++c)
      if (present)
        quads[c] =
            load_quad(from.row(row), 4 * (at.x + kLanes * c), static_cast<int>(from.cols), aligned);
  }
  __device__ void add(float factor, const QuadRow& other) {
#pragma unroll
    for (int c = 0; c < kQuads; ++c) add_scaled(quads[c], factor, other.quads[c]);
  }
};

template <int kCols>
__device__ float product(const QuadRow<kCols>& a, const QuadRow<kCols>& b) {
  float sum = 0;
#pragma unroll
  for (int c = 0; c < QuadRow<kCols>::kQuads; ++c) sum += dot(a.quads[c], b.quads[c]);
  return across_lanes(sum, kLanes, WarpSum{});
}

// Reduces the values of the four lanes that have the same x, one per group. Every lane gets the
// result for its x.
template <class Reduce>
__device__ float across_groups(float value, Reduce reduce) {
  for (int step = kLanes; step < kWarp; step *= 2)
    value = reduce(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

// Adds the rows that the four groups hold and stores the sum as row at.row of `to`.
template <int kCols>
__device__ void store_sum(const LanePosition& at, const QuadRow<kCols>& row, Matrix<float> to,
                          OutputMode fold, bool aligned) {
#pragma unroll
  for (int c = 0; c < QuadRow<kCols>::kQuads; ++c) {
    const float4 part = row.quads[c];
    const float4 sum{across_groups(part.x, WarpSum{}), across_groups(part.y, WarpSum{}),
                     across_groups(part.z, WarpSum{}), across_groups(part.w, WarpSum{})};
    if (at.group == 0)
      store_quad(to.row(at.row), 4 * (at.x + kLanes * c), static_cast<int>(to.cols), aligned, fold,
                 sum);
  }
}

// The sentence that contains row n, or `sentences` if there is none.
__device__ int sentence_of(const int32_t* offsets, int64_t sentences, int n) {
  int first = 0, count = static_cast<int>(sentences) + 1;  // finds the first offset above n
  while (count > 0) {
    const int half = count / 2;
    if (__ldg(offsets + first + half) <= n) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first - 1;
}

// The keys of the sentence of a query, and the links of the query to these keys.
struct SentenceKeys {
  int first = 0, count = 0, links = 0;
  const int32_t* linked = nullptr;

  __device__ SentenceKeys(const AlignmentLossInput<float>& in, int n) {
    const int b = sentence_of(in.query_offsets, in.sentences, n);
    if (b >= in.sentences) return;
    first = in.key_offsets[b];
    count = in.key_offsets[b + 1] - first;
    links = in.link_offsets[n + 1] - in.link_offsets[n];
    linked = in.links + in.link_offsets[n];
  }
};

template <int kCols>
__global__ void losses_of(const __grid_constant__ LossArgs g, float* losses, float* log_sums) {
  const LanePosition at;
  if (at.row >= g.in.q.rows) return;
  const SentenceKeys keys(g.in, at.row);
  const QuadRow<kCols> q(at, g.in.q, at.row, keys.links > 0, g.aligned);
  float top = -INFINITY, sum = 0;  // of the scores that this group has computed: maximum and Σ exp
  for (int first = 0; first < (keys.links > 0 ? keys.count : 0); first += kGroups) {
    const int j = first + at.group;
    const QuadRow<kCols> k(at, g.in.k, keys.first + j, j < keys.count, g.aligned);
    const float s = product(q, k) * g.by;
    if (j >= keys.count) continue;
    const float high = fmaxf(top, s);
    sum = sum * expf(top - high) + expf(s - high);
    top = high;
  }
  const float high = across_groups(top, WarpMax{});
  sum = across_groups(top > -INFINITY ? sum * expf(top - high) : 0, WarpSum{});
  const float log_sum = keys.links > 0 ? high + logf(sum) : 0;
  float loss = 0;
  for (int first = 0; first < keys.links; first += kGroups) {
    const int l = first + at.group;
    const bool present = l < keys.links;
    const QuadRow<kCols> k(at, g.in.k, keys.first + (present ? keys.linked[l] : 0), present,
                           g.aligned);
    const float s = product(q, k) * g.by;
    if (present) loss += log_sum - s;  // −log a_nj
  }
  loss = across_groups(loss, WarpSum{});
  if (!at.is_first()) return;
  losses[at.row] = keys.links > 0 ? loss / static_cast<float>(keys.links) : 0;
  log_sums[at.row] = log_sum;
}

template <int kCols>
__global__ void gradient_of_q(const __grid_constant__ LossArgs g, Matrix<float> dq,
                              OutputMode fold) {
  const LanePosition at;
  if (at.row >= dq.rows) return;
  const SentenceKeys keys(g.in, at.row);
  QuadRow<kCols> sum;
  if (keys.links > 0) {
    const QuadRow<kCols> q(at, g.in.q, at.row, true, g.aligned);
    const float log_sum = g.log_sums[at.row], scale = g.scaled();
    for (int first = 0; first < keys.count; first += kGroups) {
      const int j = first + at.group;
      const QuadRow<kCols> k(at, g.in.k, keys.first + j, j < keys.count, g.aligned);
      const float s = product(q, k) * g.by;
      if (j < keys.count) sum.add(scale * expf(s - log_sum), k);  // dq = ds k
    }
    for (int l = at.group; l < keys.links; l += kGroups)
      sum.add(-scale / static_cast<float>(keys.links),
              QuadRow<kCols>(at, g.in.k, keys.first + keys.linked[l], true, g.aligned));
  }
  store_sum(at, sum, dq, fold, g.aligned);
}

// Computes (a_nj − [j ∈ G_n] / |G_n|) scale / √d_k from the score of query n and key j.
__device__ float score_gradient(const LossArgs& g, int n, int j, float score) {
  const int first = g.in.link_offsets[n], end = g.in.link_offsets[n + 1];
  if (first == end) return 0;
  float target = 0;
  for (int l = first; l < end; ++l)
    if (g.in.links[l] == j) target = 1 / static_cast<float>(end - first);
  return g.scaled() * (expf(score - g.log_sums[n]) - target);
}

template <int kCols>
__global__ void gradient_of_k(const __grid_constant__ LossArgs g, Matrix<float> dk,
                              OutputMode fold) {
  const LanePosition at;
  if (at.row >= dk.rows) return;
  QuadRow<kCols> sum;
  const int b = sentence_of(g.in.key_offsets, g.in.sentences, at.row);
  if (b < g.in.sentences) {
    const QuadRow<kCols> k(at, g.in.k, at.row, true, g.aligned);
    const int j = at.row - g.in.key_offsets[b], end = g.in.query_offsets[b + 1];
    for (int first = g.in.query_offsets[b]; first < end; first += kGroups) {
      const int n = first + at.group;
      const QuadRow<kCols> q(at, g.in.q, n, n < end, g.aligned);
      const float s = product(q, k) * g.by;
      if (n < end) sum.add(score_gradient(g, n, j, s), q);  // dk = dsᵀ q
    }
  }
  store_sum(at, sum, dk, fold, g.aligned);
}

LossArgs loss_args(const AlignmentLossInput<float>& in, const float* scale, const float* log_sums,
                   const float* gradient) {
  const bool aligned = in_quads(in.q.data, in.q.cols) && in_quads(in.k.data, in.k.cols) &&
                       in_quads(gradient, in.q.cols);
  return {in, scale, log_sums, static_cast<float>(1 / std::sqrt(static_cast<double>(in.q.cols))),
          aligned};
}

}  // namespace

template <class T>
void guide_loss(Cuda on, const AlignmentLossInput<T>& in, T* losses, T* log_sums) {
  if (in.q.rows == 0) return;
  const LossArgs g = loss_args(in, nullptr, nullptr, nullptr);
  with_width(in.q.cols, [&](auto width) {
    losses_of<width>
        <<<blocks_for(in.q.rows, kWarps), kWarps * kWarp, 0, stream(on)>>>(g, losses, log_sums);
  });
  check_launch("guide_loss");
}

template <class T>
void guide_loss_grad_q(Cuda on, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dq, OutputMode fold) {
  if (dq.rows == 0) return;
  const LossArgs g = loss_args(in, scale, log_sums, dq.data);
  with_width(dq.cols, [&](auto width) {
    gradient_of_q<width>
        <<<blocks_for(dq.rows, kWarps), kWarps * kWarp, 0, stream(on)>>>(g, dq, fold);
  });
  check_launch("guide_loss_grad_q");
}

template <class T>
void guide_loss_grad_k(Cuda on, const AlignmentLossInput<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dk, OutputMode fold) {
  if (dk.rows == 0) return;
  const LossArgs g = loss_args(in, scale, log_sums, dk.data);
  with_width(dk.cols, [&](auto width) {
    gradient_of_k<width>
        <<<blocks_for(dk.rows, kWarps), kWarps * kWarp, 0, stream(on)>>>(g, dk, fold);
  });
  check_launch("guide_loss_grad_k");
}

template void guide_loss(Cuda, const AlignmentLossInput<float>&, float*, float*);
template void guide_loss_grad_q(Cuda, const AlignmentLossInput<float>&, const float*, const float*,
                                Matrix<float>, OutputMode);
template void guide_loss_grad_k(Cuda, const AlignmentLossInput<float>&, const float*, const float*,
                                Matrix<float>, OutputMode);

}  // namespace fovea::kernel
