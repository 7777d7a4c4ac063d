#pragma once

#include "gemm/gemm_kernel.h"
#include "gemm/onednn.h"

// Matrix products by AMX, a processor extension of recent Xeons: see Note [Tiles].
namespace fovea::kernel {

// Whether the processor has AMX for bf16 and int8, and the system allows the program to use it.
bool has_tiles();

// The layout of b [k, n] that multiply_tiles() reads as `kept_b`.
dnnl::memory::desc order_of_tiles(int64_t k, int64_t n);

// Computes the product p, like matmul(). `kept_b` is p.b in the layout order_of_tiles(), or null.
// REQUIRES: has_tiles(), and the depth (number of products per sum) is at least 1.
void multiply_tiles(const GemmCall<float, bf16>& p, const void* kept_b);

}  // namespace fovea::kernel
