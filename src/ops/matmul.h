#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The type of the inputs of matrix products. Their sums are float32, or double if the inputs are
// double.
enum class Precision { f32, bf16, int8 };

// While a PrecisionScope lives, products of float tensors on its thread use inputs of this
// precision. If bf16 is not faster on this processor, bf16 products use f32. int8 applies only to
// linear() without a tape.
class PrecisionScope {
 public:
  explicit PrecisionScope(Precision precision);
  ~PrecisionScope();
  PrecisionScope(const PrecisionScope&) = delete;
  PrecisionScope& operator=(const PrecisionScope&) = delete;
  static Precision current();

 private:
  Precision outer_;
};

// The matrix product over the last two axes. The other axes are batch axes, and both operands must
// have the same. But if b is a single matrix, all matrices of a are multiplied by it.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor transpose(const Tensor& a);  // swaps the last two axes

// Note [Types of activations]
// If bf16_activations() is true, linear() returns some tensors in bf16: queries, keys and values,
// the inside of feed-forward layers, and the sub-layer outputs that are added to the residual
// stream. All other values, such as norms, embeddings, losses and parameters, are float32. A
// gradient has the type of its tensor.
enum class OutputType { sums, activation };
bool bf16_activations(Device device);

// x Wᵀ + b: x [N, in], W [out, in], b [out] or absent. The weights are stored as [out, in], so that
// W_Q, W_K and W_V, stacked by rows, form one matrix. One product then computes all three.
Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b = {},
              OutputType give = OutputType::sums);

// max(0, x Wᵀ + b), with OutputType::activation.
Tensor linear_relu(const Tensor& x, const Tensor& W, const Tensor& b);

// x as an operand of products in the current precision: a bf16 copy of x, or x itself. If x is a
// parameter, all parameters of its store are converted at once; the copies are valid until
// parameters_changed().
Tensor as_operand(const Tensor& x);
// If bf16_activations() is true, stores a bf16 copy of x as Tensor::rounded(). So a tensor that
// many operations read is converted only once.
void round_along(const Tensor& x);
void parameters_changed();      // REQUIRES: no thread runs a product that reads parameters
uint64_t parameters_version();  // changes with each call of parameters_changed()

}  // namespace fovea
