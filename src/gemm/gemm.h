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

// When a product stores a packed copy of a parameter b, in the layout that products read fastest.
// The copy is valid until parameters change. While there is a tape, parameters change at every
// update. Then packing pays only if one update multiplies few rows by b many times, as the steps of
// a recurrence do (`always`).
enum class WeightPacking { without_tape, always };

// c = op(a) op(b) + bias for OutputMode::set, c += op(a) op(b) + bias for OutputMode::add. Both
// operands have c's type, or both are bf16 and c is float. `bias` has c's type and may be absent.
void multiply(const MatmulOperands& in, const Tensor& c, const Tensor& bias, OutputMode fold,
              WeightPacking keep = WeightPacking::without_tape);

// c = op(a) op(b) + from; `from` has the size of c. If b is a parameter, it is packed as with
// WeightPacking::always.
void multiply_onto(const MatmulOperands& in, const Tensor& from, const Tensor& c);

// Returns x, converted to the type of w, so that the caller can multiply it by w.
Tensor as_factor(const Tensor& x, const Tensor& w);

// For the pull of y = x Wᵀ: adds dW = dᵀ x to the gradient of W. d and x are operands of products.
// If W is a parameter, this may happen only at the end of backward() (Note [Late weight
// gradients]). If `b` is given, the function also adds the sums of gather_sums(b, d). On a GPU
// this, too, may happen only at the end of backward().
void gather_weight_gradient(const Tensor& W, const Tensor& d, const Tensor& x,
                            const std::shared_ptr<GradientSlot>& b = {});

// Adds the sum of the rows of d to the gradient in slot b. If b has n columns and d has more, only
// the last n columns of d are summed. REQUIRES: d is not a bf16 operand on the CPU.
void gather_sums(const std::shared_ptr<GradientSlot>& b, const Tensor& d);

}  // namespace fovea
