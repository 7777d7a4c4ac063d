#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The results of cross_entropy(). `loss` is summed over the rows with a label ≥ 0. It is the cross
// entropy against q = (1 − ε) one-hot(label) + ε / V. The log-likelihood of a row is log
// softmax(logits)[label], or 0 if its label is negative.
struct CrossEntropy {
  Tensor loss;            // [1]: sum over the rows
  Tensor log_likelihood;  // [N]: one per row, without gradient
};

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing);

// The cross entropy of the logits x Wᵀ + b. It never stores all logits: it computes those of a
// chunk of rows, reduces them to loss and gradient, and discards them. x [N, D], W [V, D], b [V] or
// absent.
CrossEntropy output_loss(const Tensor& x, const Tensor& W, const Tensor& b, const Tensor& labels,
                         double smoothing);
CrossEntropy output_loss_reference(const Tensor& x, const Tensor& W, const Tensor& b,
                                   const Tensor& labels, double smoothing);

// A test hook that makes chunks small, so that tests of several chunks need no large batch. While a
// LogitsScope lives, output_loss() on its thread computes at most `most` logits at a time. But a
// chunk has at least 64 rows, on a GPU 128.
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
