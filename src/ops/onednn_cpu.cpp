#include <atomic>
#include <map>

#include "base/check.h"
#include "ops/matmul_kernel.h"
#include "ops/onednn.h"

namespace fovea::kernel {
namespace {

using dnnl::memory;

constexpr size_t kKeptAtMost = 4096;

struct Packed {
  memory::desc plain, order;
  memory values;
};

// One set per thread: oneDNN's primitives may not be run by two threads with one scratchpad.
struct Kept {
  std::map<ProductShape, KeptProduct> products;
  std::multimap<const void*, Packed> weights;
  uint64_t generation = 0;
};
thread_local Kept kept;
std::atomic<uint64_t> generation = 0;

memory::desc layout(int64_t rows, int64_t cols, memory::data_type type, bool transposed) {
  return {{rows, cols}, type, transposed ? memory::dims{1, rows} : memory::dims{cols, 1}};
}

KeptProduct create(const ProductShape& s) {
  const memory::desc a = layout(s.m, s.k, s.in, s.a_transposed);
  const memory::desc b = s.b_packed ? memory::desc({s.k, s.n}, s.in, memory::format_tag::any)
                                    : layout(s.k, s.n, s.in, s.b_transposed);
  const memory::desc c = layout(s.m, s.n, s.out, false);
  const memory::desc bias({1, s.n}, s.out, memory::format_tag::ab);
  dnnl::primitive_attr attributes;
  if (s.add) {
    dnnl::post_ops after;
    after.append_sum(1.0f);
    attributes.set_post_ops(after);
  }
  const dnnl::matmul::desc what =
      s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
  dnnl::matmul::primitive_desc description(what, attributes, engine());
  return {description, dnnl::matmul(description)};
}

// oneDNN's exceptions become ours; running out of memory is the one that users can do something
// about.
[[noreturn]] void explain(const dnnl::error& e) {
  if (e.status == dnnl_out_of_memory)
    fail(Exit::memory, "out of memory in a matrix product; lower the batch size (batch.tokens, ",
         "--batch-tokens) or use a smaller model");
  fail(Exit::unexpected, "oneDNN: ", e.message);
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

const KeptProduct& kept_product(const ProductShape& shape) {
  auto found = kept.products.find(shape);
  if (found == kept.products.end()) {
    if (kept.products.size() >= kKeptAtMost) kept.products.clear();
    try {
      found = kept.products.emplace(shape, create(shape)).first;
    } catch (const dnnl::error& e) {
      explain(e);
    }
  }
  return found->second;
}

const memory& packed(const KeptProduct& product, const memory& plain) {
  if (kept.generation != generation) {
    kept.weights.clear();
    kept.generation = generation;
  }
  const memory::desc order = product.description.weights_desc();
  const auto [first, last] = kept.weights.equal_range(plain.get_data_handle());
  for (auto at = first; at != last; ++at)
    if (at->second.order == order && at->second.plain == plain.get_desc()) return at->second.values;
  try {
    memory values(order, engine());
    memory from = plain;  // a handle
    dnnl::reorder(from, values).execute(stream(), from, values);
    stream().wait();
    return kept.weights.emplace(plain.get_data_handle(), Packed{plain.get_desc(), order, values})
        ->second.values;
  } catch (const dnnl::error& e) {
    explain(e);
  }
}

void execute(const KeptProduct& product, const void* a, const memory& b, const void* bias,
             void* c) {
  auto of = [](const memory::desc& desc, const void* data) {
    return memory(desc, engine(), const_cast<void*>(data));
  };
  const auto& d = product.description;
  try {
    std::unordered_map<int, memory> arguments = {{DNNL_ARG_SRC, of(d.src_desc(), a)},
                                                 {DNNL_ARG_WEIGHTS, b},
                                                 {DNNL_ARG_DST, of(d.dst_desc(), c)}};
    if (bias) arguments.emplace(DNNL_ARG_BIAS, of(d.bias_desc(), bias));
    product.primitive.execute(stream(), arguments);
    stream().wait();
  } catch (const dnnl::error& e) {
    explain(e);
  }
}

void forget_packed(Cpu) { ++generation; }
uint64_t packed_generation() { return generation; }

}  // namespace fovea::kernel
