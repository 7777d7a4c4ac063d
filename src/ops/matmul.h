#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The type of the inputs of matrix products. Sums are always float32, or double for double inputs.
enum class Precision { f32, bf16, int8 };

// While a PrecisionScope lives, products of float tensors on its thread use inputs of this
// precision. bf16 falls back to f32 on processors where it is not faster. int8 applies to linear()
// without a tape only.
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

// The matrix product over the last two axes. The other axes are batch axes. They must agree, unless
// b is a single matrix, by which all matrices of a are multiplied.
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor transpose(const Tensor& a);  // swaps the last two axes

// Note [Types of activations]
// If bf16_activations() is true, linear() returns activations in bf16: queries, keys and values,
// the inside of feed-forward layers, and the sub-layer outputs that the residual stream adds. All
// other values, such as norms, embeddings, losses and parameters, are float32. A gradient has the
// type of its tensor.
enum class OutputType { sums, activation };
bool bf16_activations(Device device);

// x Wᵀ + b: x [N, in], W [out, in], b [out] or absent. The weights are stored as [out, in], so that
// the rows of W_Q, W_K and W_V of one input form one matrix, and one product computes all three.
Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b = {},
              OutputType give = OutputType::sums);

// max(0, x Wᵀ + b), with OutputType::activation.
Tensor linear_relu(const Tensor& x, const Tensor& W, const Tensor& b);

// x as an operand of products in the current precision: a bf16 copy, or x itself. All parameters of
// a store are converted at once; the copies are valid until parameters_changed().
Tensor as_operand(const Tensor& x);
// If bf16_activations() is true, stores a bf16 copy of x as Tensor::rounded(). This saves
// conversions of a tensor that many operations read.
void round_along(const Tensor& x);
void parameters_changed();      // REQUIRES: no thread is in a product that reads parameters
uint64_t parameters_version();  // changes at each parameters_changed()

}  // namespace fovea
