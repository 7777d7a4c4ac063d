#include "ops/recurrent_linear.h"

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "ops/shape_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

using kernel::Transposition;

void copy_rows(const Tensor& from, const Tensor& to, OutputMode fold) {
  run(from, [&]<class T>(auto on, T) {
    const int64_t n = from.cols();
    kernel::copy<T>(on, {from.data<T>(), n, to.data<T>(), n, from.rows(), n, fold});
  });
}

// The backward pass of y = a Wᵀ, which sets the gradients of a and W. `a` and `w` are the operands
// of the product.
struct LinearBackward {
  std::shared_ptr<GradientSlot> to_a;
  Tensor W, a, w;

  void operator()(const Tensor& dy) const {
    const Tensor d = as_factor(dy, w);
    gather(to_a, [&](const Tensor& da, OutputMode fold) {  // da = dy W
      multiply({d, Transposition::as_is, w, Transposition::as_is}, da, {}, fold,
               WeightPacking::always);
    });
    gather_weight_gradient(W, d, a);  // dW = dyᵀ a
  }
};

}  // namespace

Tensor step_linear(const Tensor& x, const Tensor& W, const Tensor& b) {
  assert(x.cols() == W.size(1));
  if (PrecisionScope::current() == Precision::int8) return linear(x, W, b);
  Tensor y({x.rows(), W.size(0)}, x.type(), x.device());
  const LinearBackward back{x.slot(), W, as_operand(x), as_operand(W)};
  multiply({back.a, Transposition::as_is, back.w, Transposition::transposed}, y, b, OutputMode::set,
           WeightPacking::always);
  return record(y, {x, W, b}, [back, to_b = b.slot()](const Tensor& dy) {
    back(dy);
    gather(to_b, [&](const Tensor& db, OutputMode fold) {  // db = Σ dy
      run(dy,
          [&]<class T>(auto on, T) { kernel::column_sums(on, dy.in<T>(), db.data<T>(), fold); });
    });
  });
}

Tensor step_linear_onto(const Tensor& x, int64_t first, const Tensor& a, const Tensor& W) {
  assert(a.cols() == W.size(1) && x.cols() == W.size(0));
  if (PrecisionScope::current() == Precision::int8) return rows(x, first, a.rows()) + linear(a, W);
  Tensor y({a.rows(), x.cols()}, x.type(), x.device());
  const LinearBackward back{a.slot(), W, as_operand(a), as_operand(W)};
  multiply_onto({back.a, Transposition::as_is, back.w, Transposition::transposed},
                x.window(first, a.rows()), y);
  return record(y, {x, a, W}, [back, first, to_x = x.slot()](const Tensor& dy) {
    gather(to_x, [&](const Tensor& dx, OutputMode fold) {
      if (fold == OutputMode::set) dx.fill(0);
      copy_rows(dy, dx.window(first, dy.rows()), OutputMode::add);
    });
    back(dy);
  });
}

}  // namespace fovea
