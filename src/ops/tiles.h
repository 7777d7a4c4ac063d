#pragma once

#include "ops/matmul_kernel.h"
#include "ops/onednn.h"

// Products by AMX, which recent Xeons have: Note [Tiles].
namespace fovea::kernel {

// Whether the processor has tiles, of bf16 and int8, and the system lets us use them.
bool has_tiles();

// The order of a [k, n] in which multiply_tiles takes it.
dnnl::memory::desc order_of_tiles(int64_t k, int64_t n);

// As matmul(). `kept_b` is p.b in that order, or null. REQUIRES: has_tiles(), no sum is empty.
void multiply_tiles(const Product<float, bf16>& p, const void* kept_b);

}  // namespace fovea::kernel
