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

// When a parameter b is kept in the order that suits products best, until parameters change: with a
// tape that is once per update, which pays for few rows at a time, as in the steps of a recurrence.
enum class Keep { without_tape, always };

// c = op(a) op(b) + bias, or added to c. Both factors are of c's type, or both bf16 for a c of
// float. `bias` is of c's type and may be absent.
void multiply(const Factors& in, const Tensor& c, const Tensor& bias, Fold fold,
              Keep keep = Keep::without_tape);

// c = op(a) op(b) + from, which is as large as c. A parameter b is kept as with Keep::always.
void multiply_onto(const Factors& in, const Tensor& from, const Tensor& c);

// x in the type of w, which it will be multiplied with.
Tensor as_factor(const Tensor& x, const Tensor& w);

// For a pull of y = x Wᵀ: gathers dW = dᵀ x in the slot of W, both as operands. That of a parameter
// may come as late as the end of backward() (Note [Late weight gradients]), and on a GPU with it
// what gather_sums(b, d) would gather, where b is given.
void gather_weight_gradient(const Tensor& W, const Tensor& d, const Tensor& x,
                            const std::shared_ptr<Slot>& b = {});

// Gathers Σ d of all rows in b, of the last columns where b has fewer. REQUIRES: d is no operand
// of the CPU's in bf16.
void gather_sums(const std::shared_ptr<Slot>& b, const Tensor& d);

}  // namespace fovea
