#pragma once

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>

// oneDNN's matrix product, created once per shape and kept.
namespace fovea::kernel {

// Factors are of one type, but that of u8 is s8.
struct ProductShape {
  int64_t m, n, k;
  bool a_transposed, b_transposed, b_packed, bias, add;
  dnnl::memory::data_type in, out;
  auto operator<=>(const ProductShape&) const = default;
};

// Belongs to the thread that asked for it.
struct KeptProduct {
  dnnl::matmul primitive;
  dnnl::memory::desc order;                                 // of b
  size_t room;                                              // bytes
  mutable std::unordered_map<int, dnnl::memory> arguments;  // to be filled in
};

dnnl::engine& engine();
dnnl::stream& stream();
const KeptProduct& kept_product(const ProductShape& shape);

// Weights in an order of oneDNN's.
struct Ordered {
  dnnl::memory values;
  std::shared_ptr<void> room;  // where they stand
};
Ordered reordered(const dnnl::memory& from, const dnnl::memory::desc& order);

// `plain` in that order, kept for all threads, by its address and layout, until forget_packed().
Ordered packed(const dnnl::memory::desc& order, const dnnl::memory& plain);

// The same, kept in `home` for good. REQUIRES: `plain` has data unless `home` is filled.
Ordered packed(const dnnl::memory::desc& order, const dnnl::memory& plain,
               std::shared_ptr<void>& home);

// Grows with every forget_packed(): what was kept under an older one is stale.
uint64_t packed_generation();

void execute(const KeptProduct& product, const void* a, const dnnl::memory& b, const void* bias,
             void* c);

// Room for that many numbers, until this thread asks again.
float* room_for_half(size_t numbers);

}  // namespace fovea::kernel
