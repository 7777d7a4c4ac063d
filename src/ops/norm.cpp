#include "ops/norm.h"

#include "ops/elementwise.h"
#include "ops/matmul_kernel.h"
#include "ops/norm_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// What the gradient keeps: n and 1 / √(σ² + ε), not the sum that was normalised.
struct Kept {
  Tensor normalised, inverse_deviation, g;
};

void flow_back(const Kept& kept, const Tensor& dy, const Dropout& dropout, const Tensor& dx,
               Fold fold_x, const Tensor& df, Fold fold_f) {
  run(dy, [&]<class T>(auto on, T) {
    kernel::norm_grad<T>(on, {kept.normalised.in<T>(), dy.in<T>(), kept.inverse_deviation.data<T>(),
                              kept.g.data<T>(), dropout, dx.out<T>(), df.out<T>(), fold_x, fold_f});
  });
}

}  // namespace

Tensor residual_norm(const Tensor& x, const Tensor& f, const Dropout& dropout, const Tensor& g,
                     const Tensor& b, double epsilon) {
  assert(x.cols() == g.elements() && g.elements() == b.elements());
  Tensor y = Tensor::like(x);
  Kept kept{{}, {}, g};
  if (Tape::live()) {
    kept.normalised = Tensor::like(x);
    kept.inverse_deviation = Tensor({x.rows()}, x.type(), x.device());
  }
  run(x, [&]<class T>(auto on, T) {
    kernel::norm<T>(on, {x.in<T>(), f.in<T>(), dropout, g.data<T>(), b.data<T>(), epsilon},
                    y.out<T>(), kept.normalised.out<T>(), kept.inverse_deviation.data<T>());
  });
  return record(
      y, {x, f, g, b},
      [=, to_x = x.slot(), to_f = f.slot(), to_g = g.slot(), to_b = b.slot()](const Tensor& dy) {
        gather(to_g, [&](const Tensor& dg, Fold fold) {
          run(dy, [&]<class T>(auto on, T) {
            kernel::norm_gain_grad(on, kept.normalised.in<T>(), dy.in<T>(), dg.data<T>(), fold);
          });
        });
        gather(to_b, [&](const Tensor& db, Fold fold) {
          run(dy, [&]<class T>(auto on, T) {
            kernel::column_sums(on, dy.in<T>(), db.data<T>(), fold);
          });
        });
        if (to_x && to_f)  // both in one pass
          to_x->gather([&](const Tensor& dx, Fold fold_x) {
            to_f->gather([&](const Tensor& df, Fold fold_f) {
              flow_back(kept, dy, dropout, dx, fold_x, df, fold_f);
            });
          });
        else if (to_x)
          to_x->gather([&](const Tensor& dx, Fold fold) {
            flow_back(kept, dy, dropout, dx, fold, {}, Fold::set);
          });
        else if (to_f)
          to_f->gather([&](const Tensor& df, Fold fold) {
            flow_back(kept, dy, dropout, {}, Fold::set, df, fold);
          });
      });
}

Tensor layer_norm(const Tensor& x, const Tensor& g, const Tensor& b, double epsilon) {
  return residual_norm(x, {}, {}, g, b, epsilon);
}

Tensor residual_norm_reference(const Tensor& x, const Tensor& f, const Dropout& dropout,
                               const Tensor& g, const Tensor& b, double epsilon) {
  return layer_norm(residual(x, f, dropout), g, b, epsilon);
}

}  // namespace fovea
