#pragma once

#include "tensor/tensor.h"

namespace fovea {

// Cross entropy against q = (1 − ε) one-hot(label) + ε / V, summed over the rows whose label is
// not negative; and log softmax(logits)[label] of every row (0 for those left out).
struct CrossEntropy {
  Tensor loss;            // [1]
  Tensor log_likelihood;  // [N], without gradient
};

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing);

// The same of the logits x Wᵀ + b, which are never held as a whole: a few rows at a time are
// multiplied, turned into loss and gradient, and forgotten. x [N, D], W [V, D], b [V] or absent.
CrossEntropy output_loss(const Tensor& x, const Tensor& W, const Tensor& b, const Tensor& labels,
                         double smoothing);
CrossEntropy output_loss_reference(const Tensor& x, const Tensor& W, const Tensor& b,
                                   const Tensor& labels, double smoothing);

}  // namespace fovea
