#include <sys/mman.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <vector>

#include "base/available_memory.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "gemm/gemm_kernel.h"
#include "gemm/onednn.h"
#include "gemm/onednn_version.h"

namespace fovea::kernel {
namespace {

using dnnl::memory;

std::atomic<size_t> cache_capacity = 4096;

// A stored copy of weights in the layout `order`. `plain` is the layout of the weights that were
// copied.
struct PackedWeights {
  memory::desc plain, order;
  PackedMatrix kept;
  uint64_t generation;
};

constexpr size_t kHugePage = size_t{2} << 20;

// Allocates whole huge pages. The caller must free them.
void* huge_pages(size_t bytes) {
  void* const start = std::aligned_alloc(kHugePage, bytes);
  if (!start) throw dnnl::error(dnnl_out_of_memory, "no memory for copies of operands");
  madvise(start, bytes, MADV_HUGEPAGE);
  return start;
}
size_t in_huge_pages(size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }

std::shared_ptr<void> allocate_huge(size_t bytes) { return {huge_pages(bytes), std::free}; }

// Allocates memory for weights in huge pages. A decoding step reads all weights. In small pages it
// would wait for address translations. All weights of a model are freed together, so small matrices
// share a chunk of memory.
std::shared_ptr<void> allocate_weights(size_t bytes) {
  constexpr size_t kChunk = 4 * kHugePage, kLine = 64;
  if (bytes >= kHugePage) return allocate_huge(in_huge_pages(bytes));
  static std::mutex mutex;
  static std::weak_ptr<void> newest;
  static size_t used = 0;
  const std::lock_guard hold(mutex);
  std::shared_ptr<void> chunk = newest.lock();
  if (!chunk || used + bytes > kChunk) {
    newest = chunk = allocate_huge(kChunk);
    used = 0;
  }
  char* const start = static_cast<char*>(chunk.get()) + used;
  used += (bytes + kLine - 1) / kLine * kLine;
  return {chunk, start};
}

// Scratch memory in huge pages, for oneDNN's copies of operands. In small pages, the speed of
// medium-sized products would depend on the physical addresses of the pages.
class Scratch {
 public:
  Scratch() = default;
  ~Scratch() { std::free(start_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void* take(size_t bytes) {
    if (bytes <= size_) return start_;
    std::free(start_);
    start_ = nullptr;
    size_ = 0;
    start_ = huge_pages(in_huge_pages(bytes));
    size_ = in_huge_pages(bytes);
    return start_;
  }

 private:
  void* start_ = nullptr;
  size_t size_ = 0;
};
thread_local Scratch scratch;

// The compiled products of this thread. Each thread has its own, because a product stores its
// arguments.
thread_local std::map<ProductShape, KeptProduct> kept_products;

// The stored copies of weights, by address. All threads share them.
struct KeptWeights {
  std::mutex mutex;
  std::multimap<const void*, PackedWeights> all;
  uint64_t generation = 0;
};
KeptWeights& kept_weights() {
  static KeptWeights* const kept = new KeptWeights;
  return *kept;
}
std::atomic<uint64_t> generation = 0;

memory::desc layout(int64_t rows, int64_t cols, memory::data_type type, bool transposed) {
  return {{rows, cols}, type, transposed ? memory::dims{1, rows} : memory::dims{cols, 1}};
}

// Throws an Error if memory is short, because oneDNN crashes if it cannot allocate memory for its
// code.
void check_memory(size_t bytes) {
  constexpr size_t kCode = size_t{16} << 20;
  if (!system_has(bytes + kCode))
    throw dnnl::error(dnnl_out_of_memory, "no memory for the code of a product");
}

// Versions of oneDNN before 3.0 describe a product in two steps, versions from 3.0 on in one step.
template <class Matmul>
typename Matmul::primitive_desc described(const memory::desc& a, const memory::desc& b,
                                          const memory::desc* bias, const memory::desc& c,
                                          const dnnl::primitive_attr& attributes) {
  using Description = typename Matmul::primitive_desc;
  if constexpr (requires { typename Matmul::desc; }) {
    using Operation = typename Matmul::desc;
    return Description(bias ? Operation(a, b, *bias, c) : Operation(a, b, c), attributes, engine());
  } else {
    return bias ? Description(engine(), a, b, *bias, c, attributes)
                : Description(engine(), a, b, c, attributes);
  }
}

KeptProduct create(const ProductShape& s) {
  check_memory(0);
  const memory::data_type type_of_b = s.in == memory::data_type::u8 ? memory::data_type::s8 : s.in;
  const memory::desc a = layout(s.m, s.k, s.in, s.a_transposed);
  const memory::desc b = s.b_packed ? memory::desc({s.k, s.n}, type_of_b, memory::format_tag::any)
                                    : layout(s.k, s.n, type_of_b, s.b_transposed);
  const memory::desc c = layout(s.m, s.n, s.out, false);
  const memory::desc bias({1, s.n}, s.out, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  if (s.add) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  const auto description = described<dnnl::matmul>(a, b, s.bias ? &bias : nullptr, c, attributes);
  const memory::desc order = description.weights_desc(),
                     scratch_desc = description.scratchpad_desc();
  const auto without_data = [](const memory::desc& desc) {
    return memory(desc, engine(), nullptr);
  };
  std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, without_data(a)},
                                               {DNNL_ARG_WEIGHTS, without_data(order)},
                                               {DNNL_ARG_DST, without_data(c)}};
  if (s.bias) arguments.emplace(DNNL_ARG_BIAS, without_data(bias));
  if (scratch_desc.get_size() > 0)
    arguments.emplace(DNNL_ARG_SCRATCHPAD, without_data(scratch_desc));
  return {dnnl::matmul(description), order, scratch_desc.get_size(), std::move(arguments)};
}

// Turns an exception of oneDNN into an Error. If memory is exhausted, its message says what the
// user can do.
[[noreturn]] void explain(const dnnl::error& e) {
  if (e.status == dnnl_out_of_memory)
    fail(ExitCode::memory,
         "out of memory in a matrix product; lower the batch size (batch.tokens, ",
         "`batch_tokens`) or use a smaller model");
  fail(ExitCode::unexpected, "oneDNN: ", e.message);
}

}  // namespace

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}
dnnl::stream& stream() {
  thread_local dnnl::stream only(engine());
  return only;
}

void keep_products(int most) {
  cache_capacity = static_cast<size_t>(most);
  dnnl::set_primitive_cache_capacity(most);
}

const KeptProduct& kept_product(const ProductShape& shape) {
  auto found = kept_products.find(shape);
  if (found == kept_products.end()) {
    if (kept_products.size() >= cache_capacity) kept_products.clear();
    static std::mutex creating;  // because all threads share oneDNN's own cache
    const std::lock_guard hold(creating);
    try {
      found = kept_products.emplace(shape, create(shape)).first;
    } catch (const dnnl::error& e) {
      explain(e);
    }
  }
  return found->second;
}

namespace {

void reorder(memory from, memory to) {
  try {
    check_memory(0);
    dnnl::reorder(from, to).execute(stream(), from, to);
    stream().wait();
  } catch (const dnnl::error& e) {
    explain(e);
  }
}

}  // namespace

PackedMatrix reordered(const memory& from, const memory::desc& order) {
  try {
    check_memory(order.get_size());
    const std::shared_ptr<void> owner = allocate_weights(order.get_size());
    const memory values(order, engine(), owner.get());
    reorder(from, values);
    return {values, owner};
  } catch (const dnnl::error& e) {
    explain(e);
  }
}

// If the stored copy is stale, writes the new copy to the same memory. The reason: weights change
// with every update, and new memory from the system costs more than the conversion.
PackedMatrix packed(const memory::desc& order, const memory& plain) {
  KeptWeights& kept = kept_weights();
  const BriefLock hold(kept.mutex);
  const uint64_t now = generation;
  if (kept.generation != now)
    std::erase_if(kept.all, [=](const auto& w) { return w.second.generation + 2 < now; });
  kept.generation = now;
  const auto [first, last] = kept.all.equal_range(plain.get_data_handle());
  for (auto at = first; at != last; ++at) {
    PackedWeights& found = at->second;
    if (found.order != order || found.plain != plain.get_desc()) continue;
    if (found.generation != now) reorder(plain, found.kept.values);
    found.generation = now;
    return found.kept;
  }
  const PackedWeights fresh{plain.get_desc(), order, reordered(plain, order), now};
  return kept.all.emplace(plain.get_data_handle(), fresh)->second.kept;
}

PackedMatrix packed(const memory::desc& order, const memory& plain, std::shared_ptr<void>& home) {
  static std::mutex mutex;
  const BriefLock hold(mutex);
  if (!home) home = std::make_shared<std::vector<PackedMatrix>>();
  auto& orders = *static_cast<std::vector<PackedMatrix>*>(home.get());
  for (const PackedMatrix& kept : orders)
    if (kept.values.get_desc() == order) return kept;
  return orders.emplace_back(reordered(orders.empty() ? plain : orders.front().values, order));
}

void execute(const KeptProduct& product, const void* a, const memory& b, const void* bias,
             void* c) {
  const auto put = [&](int argument, const void* data) {
    product.arguments.at(argument).set_data_handle(const_cast<void*>(data));
  };
  try {
    put(DNNL_ARG_SRC, a);
    put(DNNL_ARG_DST, c);
    if (bias) put(DNNL_ARG_BIAS, bias);
    if (product.scratch_bytes > 0) put(DNNL_ARG_SCRATCHPAD, scratch.take(product.scratch_bytes));
    product.arguments.at(DNNL_ARG_WEIGHTS) = b;
    product.primitive.execute(stream(), product.arguments);
    stream().wait();
    product.arguments.at(DNNL_ARG_WEIGHTS) = {};  // the product may outlive b
  } catch (const dnnl::error& e) {
    explain(e);
  }
}

float* room_for_half(size_t numbers) {
  thread_local Scratch buffer;
  try {
    return static_cast<float*>(buffer.take(numbers * sizeof(float)));
  } catch (const dnnl::error& e) {
    explain(e);
  }
}

void forget_packed(Cpu) { ++generation; }
uint64_t packed_generation() { return generation; }

std::string onednn_version() {
  const dnnl_version_t* const v = dnnl_version();
  return std::to_string(v->major) + '.' + std::to_string(v->minor) + '.' + std::to_string(v->patch);
}

}  // namespace fovea::kernel
