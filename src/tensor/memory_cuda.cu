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

// Pinned host memory for uploads. The bytes of an upload stay here until the device has copied
// them, and the host continues meanwhile.
struct StagingBuffer {
  std::byte* start = nullptr;
  std::size_t used = 0;
  cudaStream_t stream = nullptr;

  StagingBuffer() {
    check_cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cannot create a stream");
    check_cuda(cudaMallocHost(&start, kStaging), "cannot allocate pinned memory");
  }
  // Returns `bytes` bytes of free space. If there is too little space, waits until the device has
  // copied all earlier bytes.
  std::byte* reserve(std::size_t bytes) {
    if (used + bytes > kStaging) {
      check_cuda(cudaStreamSynchronize(stream), "cannot wait for the device");
      used = 0;
    }
    std::byte* const at = start + used;
    used += (bytes + kCudaAlignment - 1) / kCudaAlignment * kCudaAlignment;
    return at;
  }
};

// The buffer is never destroyed, because tensors in static storage may outlive a static object.
StagingBuffer& staging(Cuda on) {
  check_cuda(cudaSetDevice(on.index), "cannot select the device");
  static StagingBuffer* const only = new StagingBuffer;
  return *only;
}

// Bytes that stay free for drivers and libraries if limit_memory() sets no limit.
constexpr std::size_t kReservedForDrivers = std::size_t{512} << 20;
constexpr int kMinCapability = 8;  // major compute capability that the kernels need
std::atomic<std::size_t> limit_of_device{0}, taken_of_device{0};

// Allocates a block for the arena. Its arena must use Blocks::apart, because a copy must not cross
// from one allocation of CUDA into another.
std::byte* allocate_on_device(std::size_t bytes, const MemoryUse&) {
  const std::size_t limit = limit_of_device, taken = taken_of_device;
  check(limit == 0 || taken + bytes <= limit, ExitCode::memory, "out of GPU memory: another ",
        bytes >> 20, " MiB with the ", taken >> 20, " MiB in use would exceed the limit of ",
        limit >> 20, " MiB; raise `workspace`, ", kNeedsLess);
  void* start = nullptr;
  const cudaError_t result = cudaMalloc(&start, bytes);
  if (result == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // otherwise the next launch would report this error again
    fail(ExitCode::memory, "out of GPU memory: cannot allocate another ", bytes >> 20,
         " MiB with the ", taken >> 20, " MiB in use; ", kNeedsLess);
  }
  check_cuda(result, "cannot allocate memory");
  taken_of_device += bytes;
  return static_cast<std::byte*>(start);
}

// Returns a block of the arena. cudaFree() waits for all work of the device.
void free_on_device(std::byte* start, std::size_t bytes) {
  check_cuda(cudaFree(start), "cannot free memory");
  taken_of_device -= bytes;
}

__global__ void fill_all(uint32_t* to, std::size_t count, uint32_t word) {
  const std::size_t step = std::size_t{gridDim.x} * blockDim.x;
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step)
    to[i] = word;
}

constexpr int kWords = 4;  // words per thread; a thread reads all of them before it writes

// The copies that one launch makes, at most kMost.
struct CopyBatch {
  static constexpr std::size_t kMost = 64;
  ByteCopy at[kMost];
};

template <class Word>
__global__ void __launch_bounds__(kThreads) copy_batch(const __grid_constant__ CopyBatch moves) {
  const ByteCopy& m = moves.at[blockIdx.y];
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

// Returns the largest of 16, 4 and 1 that divides all addresses and lengths.
std::size_t word_size_of(std::span<const ByteCopy> moves) {
  std::uintptr_t bits = sizeof(uint4);
  for (const ByteCopy& m : moves)
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
  if (memory) cudaGetLastError();  // otherwise the next launch would report this error again
  fail(memory ? ExitCode::memory : ExitCode::unexpected, "CUDA: ", what, ": ",
       cudaGetErrorString(result), memory ? "; " : "", memory ? kNeedsLess : "");
}
void check_launch(const char* kernel) { check_cuda(cudaGetLastError(), kernel); }

std::string describe(Cuda device) {
  int count = 0;
  const cudaError_t found = cudaGetDeviceCount(&count);
  check(found == cudaSuccess && device.index < count, ExitCode::usage,
        "`device` cuda: no usable GPU (",
        found == cudaSuccess ? "none found" : cudaGetErrorString(found), "); use `device` cpu");
  cudaDeviceProp properties{};
  check_cuda(cudaGetDeviceProperties(&properties, device.index),
             "cannot read the device's properties");
  check(properties.major >= kMinCapability, ExitCode::usage, "`device` cuda: the ", properties.name,
        " has compute capability ", properties.major, ".", properties.minor, "; ", kMinCapability,
        ".0 (Ampere) or newer is required; use `device` cpu");
  return std::string(properties.name) + ", " + std::to_string(properties.totalGlobalMem >> 30) +
         " GiB";
}

namespace {

struct Arenas {
  Arena regular{kChunk, allocate_on_device, free_on_device, Arena::Blocks::apart};
  // This arena has no `less`, so its addresses stay valid until forget_graphs().
  Arena of_graphs{kChunk, allocate_on_device, nullptr, Arena::Blocks::apart};
};
Arenas& arenas(Cuda on) {
  static Arenas* const all = new Arenas;
  staging(on);
  return *all;
}

}  // namespace

Arena& arena(Cuda on) { return capturing() ? arenas(on).of_graphs : arenas(on).regular; }

namespace memory {

void copy(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream(on)), "cannot copy");
}

void copy_all(Cuda on, std::span<const ByteCopy> moves) {
  for (std::size_t first = 0; first < moves.size(); first += CopyBatch::kMost) {
    const auto some = moves.subspan(first, std::min(CopyBatch::kMost, moves.size() - first));
    CopyBatch batch{};
    std::size_t longest = 0;
    for (std::size_t i = 0; i < some.size(); ++i) {
      batch.at[i] = some[i];
      longest = std::max(longest, some[i].bytes);
    }
    const std::size_t word_size = word_size_of(some), each = kWords * kThreads * word_size;
    const dim3 blocks(static_cast<unsigned>(std::max<std::size_t>(1, (longest + each - 1) / each)),
                      static_cast<unsigned>(some.size()));
    auto* const kernel = word_size == 16  ? copy_batch<uint4>
                         : word_size == 4 ? copy_batch<uint32_t>
                                          : copy_batch<std::byte>;
    kernel<<<blocks, kThreads, 0, stream(on)>>>(batch);
    check_launch("cannot copy");
  }
}

void upload(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  refuse_while_capturing();
  if (bytes > kStaging) {
    check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream(on)),
               "cannot upload");
    return finish(on);
  }
  std::byte* const pinned = staging(on).reserve(bytes);
  std::memcpy(pinned, from, bytes);
  check_cuda(cudaMemcpyAsync(to, pinned, bytes, cudaMemcpyHostToDevice, stream(on)),
             "cannot upload");
}

void download(Cuda on, const std::byte* from, std::byte* to, std::size_t bytes) {
  refuse_while_capturing();
  std::byte* const pinned = bytes <= kStaging ? staging(on).reserve(bytes) : to;
  check_cuda(cudaMemcpyAsync(pinned, from, bytes, cudaMemcpyDeviceToHost, stream(on)),
             "cannot download");
  finish(on);
  if (pinned != to) std::memcpy(to, pinned, bytes);  // pinned memory makes the copy faster
}

void finish(Cuda on) {
  refuse_while_capturing();
  check_cuda(cudaStreamSynchronize(stream(on)), "cannot wait for the device");
}

MemoryUse use(Cuda on) {
  const MemoryUse regular = arenas(on).regular.use(), of_graphs = arenas(on).of_graphs.use();
  return {regular.reserved + of_graphs.reserved, regular.in_use + of_graphs.in_use,
          regular.peak + of_graphs.peak};
}

void limit(Cuda, std::size_t bytes) { limit_of_device = bytes; }

std::size_t at_most(Cuda on) {
  if (limit_of_device > 0) return limit_of_device;
  std::size_t free = 0, all = 0;
  staging(on);  // selects the device; the driver allocates its own memory
  check_cuda(cudaMemGetInfo(&free, &all), "cannot read the amount of free memory");
  return taken_of_device + (free > 2 * kReservedForDrivers ? free - kReservedForDrivers : free);
}

void release(Cuda on) {
  arenas(on).regular.release();
  forget_graphs();
  arenas(on).of_graphs.release(free_on_device);
}

void fill_words(Cuda on, std::byte* to, std::size_t count, uint32_t word) {
  if (count == 0) return;
  if (word == 0) {
    check_cuda(cudaMemsetAsync(to, 0, 4 * count, stream(on)), "cannot clear memory");
    return;
  }
  const std::size_t blocks = std::min<std::size_t>((count + kThreads - 1) / kThreads, 2048);
  fill_all<<<static_cast<unsigned>(blocks), kThreads, 0, stream(on)>>>(
      reinterpret_cast<uint32_t*>(to), count, word);
  check_launch("fill");
}

}  // namespace memory
}  // namespace fovea
