#include "ops/attention_head.cuh"
#include "tensor/cuda.h"
#include "tensor/memory.h"
#include "tensor/warp.cuh"

// The gradient of distance scores, from the parts that the blocks of attention_grad() computed.
namespace fovea::kernel {
namespace {

constexpr int kThreads = 128;

// A thread per distance and head. parts: [sentences, heads, distances].
__global__ void __launch_bounds__(kThreads)
    sum_sentences(const float* parts, int64_t sentences, Matrix<float> distances, OutputMode fold) {
  const int64_t at = int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (at >= distances.size()) return;
  const int64_t head = at / distances.rows, distance = at % distances.rows;
  float sum = 0;
  for (int64_t b = 0; b < sentences; ++b) sum += parts[b * distances.size() + at];
  fold_into(distances.row(distance)[head], fold, sum);
}

}  // namespace

Buffer clear_distance_parts(Cuda on, int64_t sentences, int64_t heads, int64_t reach) {
  const auto bytes = static_cast<size_t>(sentences * heads * (2 * reach + 1)) * sizeof(float);
  Buffer parts = allocate(bytes, on);
  check_cuda(cudaMemsetAsync(parts.get(), 0, bytes, stream(on)), "gradient of distance scores");
  return parts;
}

void sum_distance_parts(Cuda on, const Buffer& parts, int64_t sentences, Matrix<float> distances,
                        OutputMode fold) {
  sum_sentences<<<blocks_for(distances.size(), kThreads), kThreads, 0, stream(on)>>>(
      reinterpret_cast<const float*>(parts.get()), sentences, distances, fold);
  check_launch("gradient of distance scores");
}

}  // namespace fovea::kernel
