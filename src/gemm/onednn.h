#pragma once

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

// Matrix products by oneDNN. A product is compiled once per shape and then stored.
namespace fovea::kernel {

// The properties of a product that oneDNN compiles. Both operands have the same type, except that b
// is s8 if a is u8.
struct ProductShape {
  int64_t m, n, k;
  bool a_transposed, b_transposed, b_packed, bias, add;
  dnnl::memory::data_type in, out;
  auto operator<=>(const ProductShape&) const = default;
};

// A product that oneDNN has compiled. Only the thread that created it may use it.
struct KeptProduct {
  dnnl::matmul primitive;
  dnnl::memory::desc order;                                 // the layout of b that it reads
  size_t scratch_bytes;                                     // scratch memory that execute() needs
  mutable std::unordered_map<int, dnnl::memory> arguments;  // execute() sets their data
};

dnnl::engine& engine();
dnnl::stream& stream();
const KeptProduct& kept_product(const ProductShape& shape);

// Weights in a layout of oneDNN.
struct PackedMatrix {
  dnnl::memory values;
  std::shared_ptr<void> owner;  // owns the memory of values
};
PackedMatrix reordered(const dnnl::memory& from, const dnnl::memory::desc& order);

// Returns `plain` in the layout `order`. All threads share the copy, which is stored by address and
// layout until forget_packed().
PackedMatrix packed(const dnnl::memory::desc& order, const dnnl::memory& plain);

// Returns `plain` in the layout `order`, stored permanently in `home`. REQUIRES: `plain` has data,
// or `home` already holds a copy.
PackedMatrix packed(const dnnl::memory::desc& order, const dnnl::memory& plain,
                    std::shared_ptr<void>& home);

// The number of calls of forget_packed(). If a stored copy has a lower number, it is stale.
uint64_t packed_generation();

void execute(const KeptProduct& product, const void* a, const dnnl::memory& b, const void* bias,
             void* c);

// Returns memory for `numbers` floats. It is valid until this thread calls the function again.
float* room_for_half(size_t numbers);

}  // namespace fovea::kernel
