#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The numbers that matrix products take in; sums are always float32 (double in double).
enum class Precision { f32, bf16, int8 };

// While one lives, products of float tensors take their inputs in this precision. bf16 falls back
// to f32 where the processor gains nothing from it; int8 is for linear() without a tape.
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

// The product over the last two axes; the axes before them are a batch, and must agree
// (or, for a plain matrix b, are shared by all of a).
Tensor matmul(const Tensor& a, const Tensor& b);
Tensor transpose(const Tensor& a);  // swaps the last two axes

// Note [Types of activations]
// Where bf16_activations() is true, what linear() gives as an activation is bf16: queries, keys and
// values, the inside of feed-forward layers, and what sub-layers add to the residual stream. All
// else, such as norms, embeddings, losses and parameters, is float32; a gradient has the type of
// what it is the gradient of.
enum class Give { sums, activation };
bool bf16_activations(Device device);

// x Wᵀ + b: x [N, in], W [out, in], b [out] or absent. The weights are kept as [out, in], so that
// W_Q, W_K, W_V of one input stand one below the other and are multiplied in one go.
Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b = {}, Give give = Give::sums);

// max(0, x Wᵀ + b) as an activation.
Tensor linear_relu(const Tensor& x, const Tensor& W, const Tensor& b);

// Values as products in the current precision take them: in bf16, or the tensor itself. All
// parameters of a store are converted at once and kept until parameters_changed().
Tensor as_operand(const Tensor& x);
// Where bf16_activations() is true, gives x the copy that Tensor::rounded() is: for what many
// operations will read.
void round_along(const Tensor& x);
void parameters_changed();      // REQUIRES: no thread is in a product that reads them
uint64_t parameters_version();  // another after each parameters_changed()

}  // namespace fovea
