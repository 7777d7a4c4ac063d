#pragma once

#include "ops/matmul_kernel.h"
#include "tensor/tensor.h"

namespace fovea {

// For ops that multiply: two tensors as they enter a product.
struct Factors {
  Tensor a;
  kernel::Side a_side;
  Tensor b;
  kernel::Side b_side;
};

// c = op(a) op(b) + bias, or added to c. Both factors are of c's type, or both bf16 for a c of
// float. `bias` may be absent. Without a tape, a parameter b is kept in its best order.
void multiply(const Factors& in, const Tensor& c, const Tensor& bias, Fold fold);

// For a pull of y = x Wᵀ: gathers dW = dᵀ x in the slot of W, both as operands. That of a parameter
// may come as late as the end of backward() (Note [Late weight gradients]).
void gather_weight_gradient(const Tensor& W, const Tensor& d, const Tensor& x);

}  // namespace fovea
