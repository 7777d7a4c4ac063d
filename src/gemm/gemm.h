#pragma once

#include "gemm/gemm_kernel.h"
#include "tensor/tensor.h"

namespace fovea {

// The two operands of a product of tensors.
struct MatmulOperands {
  Tensor a;
  kernel::Transposition a_side;
  Tensor b;
  kernel::Transposition b_side;
};

// Says when a copy of a parameter b is stored in the packed layout that products read fastest,
// until parameters change. While there is a tape, parameters change at every update. Then packing
// pays only if one update has many products of few rows, such as the steps of a recurrence
// (`always`).
enum class WeightPacking { without_tape, always };

// c = op(a) op(b) + bias, or c += this, as `fold` says. Both operands have c's type, or both are
// bf16 and c is float. `bias` has c's type and may be absent.
void multiply(const MatmulOperands& in, const Tensor& c, const Tensor& bias, OutputMode fold,
              WeightPacking keep = WeightPacking::without_tape);

// c = op(a) op(b) + from, which has the size of c. A parameter b is packed as with
// WeightPacking::always.
void multiply_onto(const MatmulOperands& in, const Tensor& from, const Tensor& c);

// x, converted to the type of w. The caller multiplies the result by w.
Tensor as_factor(const Tensor& x, const Tensor& w);

// For the pull of y = x Wᵀ: adds dW = dᵀ x to the slot of W; d and x are operands. For a parameter
// this may happen at the end of backward() (Note [Late weight gradients]). If `b` is given, also
// does what gather_sums(b, d) does; on a GPU perhaps only at the end of backward(), too.
void gather_weight_gradient(const Tensor& W, const Tensor& d, const Tensor& x,
                            const std::shared_ptr<GradientSlot>& b = {});

// Adds the sum of the rows of d to the slot b. If b has fewer columns than d, only the last columns
// of d are summed. REQUIRES: d is not a bf16 operand on the CPU.
void gather_sums(const std::shared_ptr<GradientSlot>& b, const Tensor& d);

}  // namespace fovea
