#include <atomic>
#include <cstring>

#include "base/check.h"
#include "tensor/arena.h"
#include "tensor/cuda.h"
#include "tensor/graph.h"
#include "tensor/memory.h"
#include "tensor/workspace.h"

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
    used += (bytes + kCudaAlignment - 1) / kCudaAlignment * kCudaAlignment;
    return at;
  }
};

// Never destroyed: tensors in static storage may outlive it.
Staging& staging(Cuda on) {
  check_cuda(cudaSetDevice(on.index), "choosing a device");
  static Staging* const only = new Staging;
  return *only;
}

// Bytes that are left to drivers and libraries where nobody has set a limit.
constexpr std::size_t kForOthers = std::size_t{512} << 20;
constexpr int kOldest = 8;  // compute capability that the kernels need, its first number
std::atomic<std::size_t> limit_of_device{0}, taken_of_device{0};

// The arena keeps blocks apart: copies may not cross from one allocation into another.
std::byte* more_from_device(std::size_t bytes, const MemoryUse&) {
  const std::size_t limit = limit_of_device, taken = taken_of_device;
  check(limit == 0 || taken + bytes <= limit, Exit::memory, "out of GPU memory: another ",
        bytes >> 20, " MiB beside the ", taken >> 20, " MiB in use are more than the ", limit >> 20,
        " MiB that may be taken; raise --workspace, ", kNeedsLess);
  void* start = nullptr;
  const cudaError_t result = cudaMalloc(&start, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // it would be reported again by the next launch
    fail(Exit::memory, "out of GPU memory: could not take another ", bytes >> 20,
         " MiB beside the ", taken >> 20, " MiB in use; ", kNeedsLess);
  }
  check_cuda(result, "taking memory");
  taken_of_device += bytes;
  return static_cast<std::byte*>(start);
}

// Waits for all that the device was asked to do.
void give_to_device(std::byte* start, std::size_t bytes) {
  check_cuda(cudaFree(start), "giving memory back");
  taken_of_device -= bytes;
}

__global__ void fill_all(uint32_t* to, std::size_t count, uint32_t word) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = word;
}

constexpr int kWords = 4;  // of a thread: read before any is written

// As many as a launch takes along.
struct Moves {
  static constexpr std::size_t kMost = 64;
  Move at[kMost];
};

template <class Word>
__global__ void __launch_bounds__(kThreads) move_all(const __grid_constant__ Moves moves) {
  const Move& m = moves.at[blockIdx.y];
  const auto* const from = reinterpret_cast<const Word*>(m.from);
  auto* const to = reinterpret_cast<Word*>(m.to);
  const std::size_t count = m.bytes / sizeof(Word);
  const std::size_t first = std::size_t{blockIdx.x} * kWords * kThreads + threadIdx.x;
  Word word[kWords];
#pragma unroll
  for (int k = 0; k < kWords; ++k)
    if (first + k * kThreads < count) word[k] = from[first + k * kThreads];
#pragma unroll
  for (int k = 0; k < kWords; ++k)
    if (first + k * kThreads < count) to[first + k * kThreads] = word[k];
}

// 16, 4 or 1: all places and lengths are multiples of it.
std::size_t grain_of(std::span<const Move> moves) {
  std::uintptr_t bits = sizeof(uint4);
  for (const Move& m : moves)
    bits |=
        reinterpret_cast<std::uintptr_t>(m.from) | reinterpret_cast<std::uintptr_t>(m.to) | m.bytes;
  bits &= ~bits + 1;
  return bits == 16 ? 16 : bits >= 4 ? 4 : 1;
}

}  // namespace

cudaStream_t stream(Cuda device) { return staging(device).stream; }

void check_cuda(cudaError_t result, const char* what) {
  if (result == cudaSuccess) return;
  const bool memory = result == cudaErrorMemoryAllocation;
  if (memory) cudaGetLastError();  // it would be reported again by the next launch
  fail(memory ? Exit::memory : Exit::unexpected, "CUDA: ", what, ": ", cudaGetErrorString(result),
       memory ? "; " : "", memory ? kNeedsLess : "");
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
  check(properties.major >= kOldest, Exit::usage, "--device cuda: the ", properties.name,
        " has compute capability ", properties.major, ".", properties.minor, ", and ", kOldest,
        ".0 (Ampere) or newer is needed; use --device cpu");
  return std::string(properties.name) + ", " + std::to_string(properties.totalGlobalMem >> 30) +
         " GiB";
}

namespace {

struct Arenas {
  Arena usual{kChunk, more_from_device, give_to_device, Arena::Blocks::apart};
  // Keeps its addresses until graphs are forgotten.
  Arena of_graphs{kChunk, more_from_device, nullptr, Arena::Blocks::apart};
};
Arenas& arenas(Cuda on) {
  static Arenas* const all = new Arenas;
  staging(on);
  return *all;
}

}  // namespace

Arena& arena(Cuda on) { return capturing() ? arenas(on).of_graphs : arenas(on).usual; }

namespace memory {

void copy(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream(on)), "copying");
}

void copy_all(Cuda on, std::span<const Move> moves) {
  for (std::size_t first = 0; first < moves.size(); first += Moves::kMost) {
    const auto some = moves.subspan(first, std::min(Moves::kMost, moves.size() - first));
    Moves together{};
    std::size_t longest = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      together.at[i] = some[i];
      longest = std::max(longest, some[i].bytes);
    }
    const std::size_t grain = grain_of(some), each = kWords * kThreads * grain;
    const dim3 blocks(static_cast<unsigned>(std::max<std::size_t>(1, (longest + each - 1) / each)),
                      static_cast<unsigned>(some.size()));
    auto* const kernel = grain == 16  ? move_all<uint4>
                         : grain == 4 ? move_all<uint32_t>
                                      : move_all<std::byte>;
    kernel<<<blocks, kThreads, 0, stream(on)>>>(together);
    check_launch("copying");
  }
}

void upload(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  refuse_while_capturing();
  if (bytes > kStaging) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream(on)), "uploading");
    return finish(on);
  }
  std::byte* const room = staging(on).room(bytes);
  std::memcpy(room, from, bytes);
  check_cuda(cudaMemcpyAsync(to, room, bytes, cudaMemcpyHostToDevice, stream(on)), "uploading");
}

void download(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  refuse_while_capturing();
  std::byte* const room = bytes <= kStaging ? staging(on).room(bytes) : to;
  check_cuda(cudaMemcpyAsync(room, from, bytes, cudaMemcpyDeviceToHost, stream(on)), "downloading");
  finish(on);
  if (room != to) std::memcpy(to, room, bytes);  // the device writes pinned memory far faster
}

void finish(Cuda on) {
  refuse_while_capturing();
  check_cuda(cudaStreamSynchronize(stream(on)), "waiting for the device");
}

MemoryUse use(Cuda on) {
  const MemoryUse usual = arenas(on).usual.use(), of_graphs = arenas(on).of_graphs.use();
  return {usual.reserved + of_graphs.reserved, usual.in_use + of_graphs.in_use,
          usual.peak + of_graphs.peak};
}

void limit(Cuda, std::size_t bytes) { limit_of_device = bytes; }

std::size_t at_most(Cuda on) {
  if (limit_of_device > 0) return limit_of_device;
  std::size_t free = 0, all = 0;
  staging(on);  // the device is chosen, and what the driver itself needs is taken
  check_cuda(cudaMemGetInfo(&free, &all), "asking for the free memory");
  return taken_of_device + (free > 2 * kForOthers ? free - kForOthers : free);
}

void release(Cuda on) {
  arenas(on).usual.release();
  forget_graphs();
  arenas(on).of_graphs.release(give_to_device);
}

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
