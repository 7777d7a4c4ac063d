#include <cstring>

#include "base/check.h"
#include "tensor/arena.h"
#include "tensor/cuda.h"
#include "tensor/memory.h"

namespace fovea {
namespace {

constexpr std::size_t kChunk = std::size_t{64} << 20;
constexpr std::size_t kStaging = std::size_t{16} << 20;
constexpr int kThreads = 256;

// Host memory that the device can read while the host goes on: what is uploaded waits here.
struct Staging {
  std::byte* start = nullptr;
  std::size_t used = 0;
  cudaStream_t stream = nullptr;

  Staging() {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "making a stream");
    check_cuda(cudaMallocHost(&start, kStaging), "taking pinned memory");
  }
  // Room for `bytes`, whose earlier contents have left.
  std::byte* room(std::size_t bytes) {
    if (used + bytes > kStaging) {
      check_cuda(cudaStreamSynchronize(stream), "waiting for the device");
      used = 0;
    }
    std::byte* const at = start + used;
    used += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return at;
  }
};

// Never destroyed: tensors in static storage may outlive it.
Staging& staging(Cuda on) {
  check_cuda(cudaSetDevice(on.index), "choosing a device");
  static Staging* const only = new Staging;
  return *only;
}

// With a gap behind it, so that the arena never joins two blocks: copies may not cross from one
// allocation into another.
std::byte* more_from_device(std::size_t bytes, const MemoryUse& use) {
  void* start = nullptr;
  if (cudaMalloc(&start, bytes + kAlignment) != cudaSuccess) {
    cudaGetLastError();  // it would be reported again by the next launch
    fail(Exit::memory, "out of GPU memory: could not take another ", bytes >> 20,
         " MiB beside the ", use.reserved >> 20,
         " MiB in use; lower the batch size (batch.tokens, --batch) or use a smaller model");
  }
  return static_cast<std::byte*>(start);
}

__global__ void fill_all(uint32_t* to, std::size_t count, uint32_t word) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = word;
}

}  // namespace

cudaStream_t stream(Cuda device) { return staging(device).stream; }

void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  fail(result == cudaErrorMemoryAllocation ? Exit::memory : Exit::unexpected, "CUDA: ", what, ": ",
       cudaGetErrorString(result));
}
void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

std::string describe(Cuda device) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  check(found == cudaSuccess && device.index < count, Exit::usage,
        "--device cuda: no GPU can be used here (",
        found == cudaSuccess ? "none found" : cudaGetErrorString(found), "); use --device cpu");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index), "asking for the device's name");
  return std::string(properties.name) + ", " + std::to_string(properties.totalGlobalMem >> 30) +
         " GiB";
}

Arena& arena(Cuda on) {
  static Arena* const only = new Arena(kChunk, more_from_device);
  staging(on);
  return *only;
}

namespace memory {

void copy(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream(on)), "copying");
}

void upload(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  if (bytes > kStaging) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream(on)), "uploading");
    return finish(on);
  }
  std::byte* const room = staging(on).room(bytes);
  std::memcpy(room, from, bytes);
  check_cuda(cudaMemcpyAsync(to, room, bytes, cudaMemcpyHostToDevice, stream(on)), "uploading");
}

void download(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream(on)), "downloading");
  finish(on);
}

void finish(Cuda on) { check_cuda(cudaStreamSynchronize(stream(on)), "waiting for the device"); }

void fill_words(Cuda on, std::byte* to, std::size_t count, uint32_t word) {
  if (count == 0) return;
  if (word == 0) {
    check_cuda(cudaMemsetAsync(to, 0, 4 * count, stream(on)), "clearing");
    return;
  }
  const std::size_t blocks = std::min<std::size_t>((count + kThreads - 1) / kThreads, 2048);
  fill_all<<<static_cast<unsigned>(blocks), kThreads, 0, stream(on)>>>(
      reinterpret_cast<uint32_t*>(to), count, word);
  check_launch("fill");
}

}  // namespace memory
}  // namespace fovea
