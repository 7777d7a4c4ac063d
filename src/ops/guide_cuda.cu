#include <cmath>

#include "ops/guide_kernel.h"
#include "ops/quad.cuh"
#include "ops/warp.cuh"
#include "tensor/cuda.h"

// A warp computes the loss or the gradient of one row. Its groups of eight lanes take every fourth
// of what the row is multiplied with; a lane has the quads x + 8c of each row.
namespace fovea::kernel {
namespace {

constexpr int kLanes = 8, kGroups = kWarp / kLanes, kWarps = 8;

struct Guiding {
  Guided<float> in;
  const float *scale, *log_sums;
  float by;  // 1 / √d_k
  bool aligned;

  __device__ float scaled() const { return by * (scale ? *scale : 1); }
};

struct Place {
  int row, group, x;
  __device__ Place()
      : row(static_cast<int>(blockIdx.x * kWarps + threadIdx.x / kWarp)),
        group(static_cast<int>(threadIdx.x) % kWarp / kLanes),
        x(static_cast<int>(threadIdx.x) % kLanes) {}
  __device__ bool is_first() const { return group == 0 && x == 0; }
};

template <int kCols>
struct Row {
  static constexpr int kQuads = kCols / (4 * kLanes);
  float4 quads[kQuads] = {};

  Row() = default;
  // Zeros if it is not `there`.
  __device__ Row(const Place& at, Matrix<const float> from, int64_t row, bool there, bool aligned) {
#pragma unroll
    for (int c = 0; c < kQuads; ++c)
      if (there)
        quads[c] =
            load_quad(from.row(row), 4 * (at.x + kLanes * c), static_cast<int>(from.cols), aligned);
  }
  __device__ void add(float factor, const Row& other) {
#pragma unroll
    for (int c = 0; c < kQuads; ++c) add_scaled(quads[c], factor, other.quads[c]);
  }
};

template <int kCols>
__device__ float product(const Row<kCols>& a, const Row<kCols>& b) {
  float sum = 0;
#pragma unroll
  for (int c = 0; c < Row<kCols>::kQuads; ++c) sum += dot(a.quads[c], b.quads[c]);
  return across_lanes(sum, kLanes, Sum{});
}

// Every lane gets fold(…) of the four groups, whose lanes have the same value or the same columns.
template <class Fold>
__device__ float across_groups(float value, Fold fold) {
  for (int step = kLanes; step < kWarp; step *= 2)
    value = fold(value, __shfl_xor_sync(~0u, value, step));
  return value;
}

// Stores the sum of the groups' rows.
template <int kCols>
__device__ void store_sum(const Place& at, const Row<kCols>& row, Matrix<float> to, Fold fold,
                          bool aligned) {
#pragma unroll
  for (int c = 0; c < Row<kCols>::kQuads; ++c) {
    const float4 of_group = row.quads[c];
    const float4 sum{across_groups(of_group.x, Sum{}), across_groups(of_group.y, Sum{}),
                     across_groups(of_group.z, Sum{}), across_groups(of_group.w, Sum{})};
    if (at.group == 0)
      store_quad(to.row(at.row), 4 * (at.x + kLanes * c), static_cast<int>(to.cols), aligned, fold,
                 sum);
  }
}

// The sentence that has row n, or `sentences` if none has.
__device__ int sentence_of(const int32_t* offsets, int64_t sentences, int n) {
  int first = 0, count = static_cast<int>(sentences) + 1;  // the first that begins after n
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

// What a query is compared with.
struct Keys {
  int first = 0, count = 0, links = 0;
  const int32_t* linked = nullptr;

  __device__ Keys(const Guided<float>& in, int n) {
    const int b = sentence_of(in.query_offsets, in.sentences, n);
    if (b >= in.sentences) return;
    first = in.key_offsets[b];
    count = in.key_offsets[b + 1] - first;
    links = in.link_offsets[n + 1] - in.link_offsets[n];
    linked = in.links + in.link_offsets[n];
  }
};

template <int kCols>
__global__ void losses_of(const __grid_constant__ Guiding g, float* losses, float* log_sums) {
  const Place at;
  if (at.row >= g.in.q.rows) return;
  const Keys keys(g.in, at.row);
  const Row<kCols> q(at, g.in.q, at.row, keys.links > 0, g.aligned);
  float top = -INFINITY, sum = 0;  // of the group's scores
  for (int first = 0; first < (keys.links > 0 ? keys.count : 0); first += kGroups) {
    const int j = first + at.group;
    const Row<kCols> k(at, g.in.k, keys.first + j, j < keys.count, g.aligned);
    const float s = product(q, k) * g.by;
    if (j >= keys.count) continue;
    const float high = fmaxf(top, s);
    sum = sum * expf(top - high) + expf(s - high);
    top = high;
  }
  const float high = across_groups(top, Larger{});
  sum = across_groups(top > -INFINITY ? sum * expf(top - high) : 0, Sum{});
  const float log_sum = keys.links > 0 ? high + logf(sum) : 0;
  float loss = 0;
  for (int first = 0; first < keys.links; first += kGroups) {
    const int l = first + at.group;
    const bool there = l < keys.links;
    const Row<kCols> k(at, g.in.k, keys.first + (there ? keys.linked[l] : 0), there, g.aligned);
    const float s = product(q, k) * g.by;
    if (there) loss += log_sum - s;  // −log a_nj
  }
  loss = across_groups(loss, Sum{});
  if (!at.is_first()) return;
  losses[at.row] = keys.links > 0 ? loss / static_cast<float>(keys.links) : 0;
  log_sums[at.row] = log_sum;
}

template <int kCols>
__global__ void gradient_of_q(const __grid_constant__ Guiding g, Matrix<float> dq, Fold fold) {
  const Place at;
  if (at.row >= dq.rows) return;
  const Keys keys(g.in, at.row);
  Row<kCols> sum;
  if (keys.links > 0) {
    const Row<kCols> q(at, g.in.q, at.row, true, g.aligned);
    const float log_sum = g.log_sums[at.row], scale = g.scaled();
    for (int first = 0; first < keys.count; first += kGroups) {
      const int j = first + at.group;
      const Row<kCols> k(at, g.in.k, keys.first + j, j < keys.count, g.aligned);
      const float s = product(q, k) * g.by;
      if (j < keys.count) sum.add(scale * expf(s - log_sum), k);  // dq = ds k
    }
    for (int l = at.group; l < keys.links; l += kGroups)
      sum.add(-scale / static_cast<float>(keys.links),
              Row<kCols>(at, g.in.k, keys.first + keys.linked[l], true, g.aligned));
  }
  store_sum(at, sum, dq, fold, g.aligned);
}

// (a_nj − [j ∈ G_n] / |G_n|) scale / √d_k from the score.
__device__ float score_gradient(const Guiding& g, int n, int j, float score) {
  const int first = g.in.link_offsets[n], end = g.in.link_offsets[n + 1];
  if (first == end) return 0;
  float of_links = 0;
  for (int l = first; l < end; ++l)
    if (g.in.links[l] == j) of_links = 1 / static_cast<float>(end - first);
  return g.scaled() * (expf(score - g.log_sums[n]) - of_links);
}

template <int kCols>
__global__ void gradient_of_k(const __grid_constant__ Guiding g, Matrix<float> dk, Fold fold) {
  const Place at;
  if (at.row >= dk.rows) return;
  Row<kCols> sum;
  const int b = sentence_of(g.in.key_offsets, g.in.sentences, at.row);
  if (b < g.in.sentences) {
    const Row<kCols> k(at, g.in.k, at.row, true, g.aligned);
    const int j = at.row - g.in.key_offsets[b], end = g.in.query_offsets[b + 1];
    for (int first = g.in.query_offsets[b]; first < end; first += kGroups) {
      const int n = first + at.group;
      const Row<kCols> q(at, g.in.q, n, n < end, g.aligned);
      const float s = product(q, k) * g.by;
      if (n < end) sum.add(score_gradient(g, n, j, s), q);  // dk = dsᵀ q
    }
  }
  store_sum(at, sum, dk, fold, g.aligned);
}

Guiding guiding(const Guided<float>& in, const float* scale, const float* log_sums,
                const float* gradient) {
  const bool aligned = in_quads(in.q.data, in.q.cols) && in_quads(in.k.data, in.k.cols) &&
                       in_quads(gradient, in.q.cols);
  return {in, scale, log_sums, static_cast<float>(1 / std::sqrt(static_cast<double>(in.q.cols))),
          aligned};
}

}  // namespace

template <class T>
void guide_loss(Cuda on, const Guided<T>& in, T* losses, T* log_sums) {
  if (in.q.rows == 0) return;
  const Guiding g = guiding(in, nullptr, nullptr, nullptr);
  with_width(in.q.cols, [&](auto width) {
    losses_of<width>
        <<<blocks_for(in.q.rows, kWarps), kWarps * kWarp, 0, stream(on)>>>(g, losses, log_sums);
  });
  check_launch("guide_loss");
}

template <class T>
void guide_loss_grad_q(Cuda on, const Guided<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dq, Fold fold) {
  if (dq.rows == 0) return;
  const Guiding g = guiding(in, scale, log_sums, dq.data);
  with_width(dq.cols, [&](auto width) {
    gradient_of_q<width>
        <<<blocks_for(dq.rows, kWarps), kWarps * kWarp, 0, stream(on)>>>(g, dq, fold);
  });
  check_launch("guide_loss_grad_q");
}

template <class T>
void guide_loss_grad_k(Cuda on, const Guided<T>& in, const T* scale, const T* log_sums,
                       Matrix<T> dk, Fold fold) {
  if (dk.rows == 0) return;
  const Guiding g = guiding(in, scale, log_sums, dk.data);
  with_width(dk.cols, [&](auto width) {
    gradient_of_k<width>
        <<<blocks_for(dk.rows, kWarps), kWarps * kWarp, 0, stream(on)>>>(g, dk, fold);
  });
  check_launch("guide_loss_grad_k");
}

template void guide_loss(Cuda, const Guided<float>&, float*, float*);
template void guide_loss_grad_q(Cuda, const Guided<float>&, const float*, const float*,
                                Matrix<float>, Fold);
template void guide_loss_grad_k(Cuda, const Guided<float>&, const float*, const float*,
                                Matrix<float>, Fold);

}  // namespace fovea::kernel
