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

// While one lives, output_loss() on this thread is content with rows of this many logits at a time:
// so that tests of its parts need no large batch. It takes 64 rows at least, 128 on a GPU.
class LogitsScope {
 public:
  explicit LogitsScope(int64_t most);
  ~LogitsScope();
  LogitsScope(const LogitsScope&) = delete;
  LogitsScope& operator=(const LogitsScope&) = delete;

 private:
  int64_t outer_;
};

}  // namespace fovea
