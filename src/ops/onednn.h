#pragma once

#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>

// oneDNN's matrix product, created once per shape and kept.
namespace fovea::kernel {

struct ProductShape {
  int64_t m, n, k;
  bool a_transposed, b_transposed, b_packed, bias, add;
  dnnl::memory::data_type in, out;
  auto operator<=>(const ProductShape&) const = default;
};

struct KeptProduct {
  dnnl::matmul::primitive_desc description;
  dnnl::matmul primitive;
};

dnnl::engine& engine();
dnnl::stream& stream();
const KeptProduct& kept_product(const ProductShape& shape);

// `plain` in the blocked order that `product` wants; kept by its address and layout until
// forget_packed().
const dnnl::memory& packed(const KeptProduct& product, const dnnl::memory& plain);

// The same, kept in `home` for good. REQUIRES: `plain` has data unless `home` is filled.
const dnnl::memory& packed(const KeptProduct& product, const dnnl::memory& plain,
                           std::shared_ptr<void>& home);

// Grows with every forget_packed(): what was kept under an older one is stale.
uint64_t packed_generation();

void execute(const KeptProduct& product, const void* a, const dnnl::memory& b, const void* bias,
             void* c);

// Room for that many numbers, until this thread asks again.
float* room_for_half(size_t numbers);

}  // namespace fovea::kernel
