#include <algorithm>
#include <bit>
#include <limits>

#include "ops/divider.cuh"
#include "ops/elementwise_kernel.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/warp.cuh"

// The CUDA versions of the kernels of elementwise_kernel.h that broadcast axes.
namespace fovea::kernel {
namespace {

constexpr int kThreads = 256, kEach = 4;

// One axis of the result: its size, and its strides in the result and in both operands.
struct Axis {
  int64_t size, y, a, b;
};

// The axes of a shape, from the slowest to the fastest. If one stride describes two neighbouring
// axes in all three arrays, append() merges them. After that, the index computation of most shapes
// needs no division; that of a bias needs one.
struct AxisList {
  int count = 0;
  Axis axis[4];

  void append(const Axis& next) {
    if (next.size == 1) return;
    if (count > 0) {
      Axis& last = axis[count - 1];
      if (last.y == next.y * next.size && last.a == next.a * next.size &&
          last.b == next.b * next.size) {
        last = {last.size * next.size, next.y, next.a, next.b};
        return;
      }
    }
    axis[count++] = next;
  }
  int64_t elements() const {
    int64_t n = 1;
    for (int k = 0; k < count; ++k) n *= axis[k].size;
    return n;
  }
};

int64_t elements_of(const Broadcast& s) { return s.size[0] * s.size[1] * s.size[2] * s.size[3]; }

// Calls body(axis) for every axis of a shape. The strides in the result are those of a dense array.
template <class Body>
void each_axis(const Broadcast& shape, Body body) {
  int64_t stride = elements_of(shape);
  for (size_t k = 0; k < 4; ++k) {
    stride /= shape.size[k];
    body(Axis{shape.size[k], stride, shape.a[k], shape.b[k]});
  }
}

// An AxisList in the form that kernels use. Index is a 32-bit type if all indices fit in it.
template <class Index>
struct Axes {
  struct Offsets {
    Index y, a, b;
  };
  int count;
  Divider<Index> divider[4];
  Index size[4], y[4], a[4], b[4];

  explicit Axes(const AxisList& list) : count(list.count) {
    for (int k = 0; k < 4; ++k) {
      const Axis axis = k < count ? list.axis[k] : Axis{1, 0, 0, 0};
      divider[k] = Divider<Index>(axis.size);
      size[k] = static_cast<Index>(axis.size);
      y[k] = static_cast<Index>(axis.y);
      a[k] = static_cast<Index>(axis.a);
      b[k] = static_cast<Index>(axis.b);
    }
  }
  // Like offsets(), but without branches. REQUIRES: the list has one axis.
  __device__ Offsets step(Index n) const { return {n * y[0], n * a[0], n * b[0]}; }
  __device__ Offsets offsets(Index n) const {
    Offsets at{0, 0, 0};
#pragma unroll
    for (int k = 3; k > 0; --k)
      if (k < count) {
        const Index rest = divider[k].of(n), i = n - rest * size[k];
        at.y += i * y[k], at.a += i * a[k], at.b += i * b[k];
        n = rest;
      }
    at.y += n * y[0], at.a += n * a[0], at.b += n * b[0];
    return at;
  }
};

template <class Body>
void with_index(int64_t elements, Body body) {
  if (elements <= std::numeric_limits<int32_t>::max())
    body(uint32_t{});
  else
    body(uint64_t{});
}

struct Add {
  __device__ static float of(float a, float b) { return a + b; }
};
struct Multiply {
  template <class T>
  __device__ static T of(T a, T b) {
    return a * b;
  }
};
struct FirstOperand {  // for a sum: da does not depend on b
  template <class T>
  __device__ static T of(T a, T) {
    return a;
  }
};

struct Operands {
  const float *a, *b;
  float* y;
  OutputMode fold;
};

// y = a ∘ b, or y += a ∘ b, where y is dense and has n elements. No branch separates the loads of a
// thread, so all its loads are in flight together.
template <class Op, class Index>
__global__ void __launch_bounds__(kThreads) combine(Axes<Index> axes, Index n, Operands in) {
  const Index first = Index{blockIdx.x} * (kThreads * kEach) + threadIdx.x;
  typename Axes<Index>::Offsets at[kEach];
  float out[kEach];
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    at[k] = axes.offsets(std::min<Index>(first + k * kThreads, n - 1));
#pragma unroll
  for (int k = 0; k < kEach; ++k) out[k] = Op::of(in.a[at[k].a], in.b[at[k].b]);
  if (in.fold == OutputMode::add) {
#pragma unroll
    for (int k = 0; k < kEach; ++k) out[k] += in.y[std::min<Index>(first + k * kThreads, n - 1)];
  }
#pragma unroll
  for (int k = 0; k < kEach; ++k)
    if (first + k * kThreads < n) in.y[first + k * kThreads] = out[k];
}

template <class Op>
void combine_all(Cuda on, const AxisList& list, const Operands& in) {
  const int64_t n = list.elements();
  with_index(n, [&]<class Index>(Index) {
    combine<Op><<<blocks_for(n, kThreads * kEach), kThreads, 0, stream(on)>>>(
        Axes<Index>(list), static_cast<Index>(n), in);
  });
  check_launch("binary");
}

}  // namespace

template <class T>
void binary(Cuda on, Binary what, const Broadcast& shape, const T* a, const T* b, T* y) {
  if (elements_of(shape) == 0) return;
  AxisList list;
  each_axis(shape, [&](const Axis& axis) { list.append(axis); });
  if (what == Binary::add)
    combine_all<Add>(on, list, {a, b, y, OutputMode::set});
  else
    combine_all<Multiply>(on, list, {a, b, y, OutputMode::set});
}

namespace {

// How the sums over repeated axes are divided among blocks. An output is one entry of the gradient;
// its terms are the entries of dy to add. A block of kThreads threads adds one strip (a range of
// the terms) for some outputs. A second kernel adds the strips of each output in order.
struct Split {
  bool outputs_first;       // neighbouring threads have neighbouring outputs (true) or terms
  unsigned outputs, terms;  // outputs and terms that a block processes at once; powers of two
  int64_t strip;            // number of terms per strip
  unsigned strips;
};

Split split_of(const AxisList& kept, const AxisList& repeated) {
  const int64_t outputs = kept.elements(), terms = repeated.elements();
  Split s;
  s.outputs_first = kept.count > 0 && kept.axis[kept.count - 1].y == 1;
  const auto at_most = [](int64_t n, unsigned most) {
    return static_cast<unsigned>(std::min<uint64_t>(std::bit_ceil(static_cast<uint64_t>(n)), most));
  };
  if (s.outputs_first)
    s.terms = at_most(terms, kThreads / at_most(outputs, kWarp));
  else
    s.terms = terms > 1024 ? kThreads : at_most(terms, kWarp);
  s.outputs = kThreads / s.terms;
  constexpr int64_t kFill = 1056,
                    kLeast = 8;  // blocks that fill a GPU; minimum number of terms per thread
  const int64_t across = (outputs + s.outputs - 1) / s.outputs;
  const int64_t wanted = std::min((kFill + across - 1) / across, terms / (kLeast * s.terms));
  const int64_t turns = (terms + s.terms - 1) / s.terms;
  const int64_t each = (turns + std::max<int64_t>(wanted, 1) - 1) / std::max<int64_t>(wanted, 1);
  s.strip = each * s.terms;
  s.strips = blocks_for(terms, s.strip);
  return s;
}

struct Gradient {
  const float *dy, *b;
  float* da;
};

// Adds the terms of one strip. Adds the sum to da or, if there are several strips, stores it in
// `parts` [outputs, strips]. The sums are in double, because one output may have many terms. Double
// costs no time, because reading the terms takes longer than adding them.
template <class Op, class Index>
__global__ void __launch_bounds__(kThreads)
    sum_repeated(Axes<Index> kept, Index outputs, Axes<Index> repeated, Index terms, Split split,
                 Gradient in, double* parts) {
  __shared__ double sums[kThreads];
  const unsigned thread = threadIdx.x;
  const unsigned own = split.outputs_first ? thread % split.outputs : thread / split.terms;
  const unsigned turn = split.outputs_first ? thread / split.outputs : thread % split.terms;
  const Index output = Index{blockIdx.x} * split.outputs + own;
  double sum = 0;
  if (output < outputs) {
    const auto at = kept.offsets(output);
    const Index first = static_cast<Index>(split.strip) * blockIdx.y;
    const Index end = first + std::min<Index>(static_cast<Index>(split.strip), terms - first);
    const auto term = [&](const auto& from) {
      return Op::template of<double>(in.dy[at.y + from.y], in.b[at.b + from.b]);
    };
    Index i = first + turn;
    if (repeated.count == 1) {  // the usual case: each thread has four loads in flight
      double four[4] = {0, 0, 0, 0};
      for (; i + 3 * split.terms < end; i += 4 * split.terms)
#pragma unroll
        for (unsigned k = 0; k < 4; ++k) four[k] += term(repeated.step(i + k * split.terms));
      sum = (four[0] + four[1]) + (four[2] + four[3]);
    }
    for (; i < end; i += split.terms) sum += term(repeated.offsets(i));
  }
  double* mine = sums + own * split.terms + turn;
  *mine = sum;
  for (unsigned step = split.terms / 2; step > 0; step /= 2) {
    __syncthreads();
    if (turn < step) *mine += mine[step];
  }
  if (turn > 0 || output >= outputs) return;
  if (parts)
    parts[static_cast<int64_t>(output) * gridDim.y + blockIdx.y] = *mine;
  else
    in.da[kept.offsets(output).a] += static_cast<float>(*mine);
}

// Adds the sums of all strips of an output, with one warp per output.
template <class Index>
__global__ void __launch_bounds__(kThreads)
    add_strips(Axes<Index> kept, Index outputs, const double* parts, unsigned strips, float* da) {
  const Index output = Index{blockIdx.x} * (kThreads / kWarp) + threadIdx.x / kWarp;
  if (output >= outputs) return;
  double sum = 0;
  for (unsigned i = threadIdx.x % kWarp; i < strips; i += kWarp)
    sum += parts[static_cast<int64_t>(output) * strips + i];
  sum = across_warp(sum, WarpSum{});
  if (threadIdx.x % kWarp == 0) da[kept.offsets(output).a] += static_cast<float>(sum);
}

template <class Op>
void sum_all(Cuda on, const AxisList& kept, const AxisList& repeated, const Gradient& in) {
  const Split split = split_of(kept, repeated);
  const int64_t outputs = kept.elements(), terms = repeated.elements();
  Buffer scratch;
  if (split.strips > 1)
    scratch = allocate(static_cast<size_t>(outputs) * split.strips * sizeof(double), on);
  double* parts = reinterpret_cast<double*>(scratch.get());
  with_index(outputs * terms, [&]<class Index>(Index) {
    const Axes<Index> axes(kept);
    const Index count = static_cast<Index>(outputs);
    const dim3 blocks(blocks_for(outputs, split.outputs), split.strips);
    sum_repeated<Op><<<blocks, kThreads, 0, stream(on)>>>(
        axes, count, Axes<Index>(repeated), static_cast<Index>(terms), split, in, parts);
    check_launch("binary_grad");
    if (!parts) return;
    add_strips<<<blocks_for(outputs, kThreads / kWarp), kThreads, 0, stream(on)>>>(
        axes, count, parts, split.strips, in.da);
    check_launch("binary_grad");
  });
}

template <class Op>
void gradient(Cuda on, const AxisList& kept, const AxisList& repeated, const Gradient& in) {
  if (repeated.count > 0) return sum_all<Op>(on, kept, repeated, in);
  AxisList list;  // da has the strides of dy
  for (int k = 0; k < kept.count; ++k) {
    Axis axis = kept.axis[k];
    axis.a = axis.y;
    list.append(axis);
  }
  combine_all<Op>(on, list, {in.dy, in.b, in.da, OutputMode::add});
}

}  // namespace

template <class T>
void binary_grad(Cuda on, Binary what, const Broadcast& shape, const T* dy, const T* b, T* da) {
  if (elements_of(shape) == 0) return;
  AxisList kept, repeated;
  each_axis(shape, [&](const Axis& axis) { (axis.a == 0 ? repeated : kept).append(axis); });
  if (what == Binary::add)
    gradient<FirstOperand>(on, kept, repeated, {dy, b, da});
  else
    gradient<Multiply>(on, kept, repeated, {dy, b, da});
}

template void binary(Cuda, Binary, const Broadcast&, const float*, const float*, float*);
template void binary_grad(Cuda, Binary, const Broadcast&, const float*, const float*, float*);

}  // namespace fovea::kernel
