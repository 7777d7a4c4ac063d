#include "ops/norm.h"

#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// The tensors that the gradient needs: the normalised input n, 1 / √(σ² + ε) and g, see
// norm_kernel.h. The gradient does not need the input itself.
struct SavedTensors {
  Tensor normalised, inverse_deviation, g;
  NormType type;
};

struct GradientTarget {
  Tensor to;  // the gradient to set or add to; absent if it is not required
  OutputMode fold = OutputMode::set;
};

// Calls body with the gradient of the slot. If there is no slot, calls body with an empty target.
template <class Body>
void gather_if(const std::shared_ptr<GradientSlot>& slot, Body body) {
  if (!slot) return body(GradientTarget{});
  slot->gather([&](const Tensor& to, OutputMode fold) { body(GradientTarget{to, fold}); });
}

struct GradientTargets {
  GradientTarget x, f, g, b;
};

void backward(const SavedTensors& kept, const Tensor& dy, const Dropout& dropout,
              const GradientTargets& to) {
  run_activation(kept.normalised, [&]<class T>(auto on, T) {
    using W = SumType<T>;
    kernel::norm_grad<T>(
        on, {kept.normalised.in<T>(), dy.in<W>(), kept.inverse_deviation.data<W>(),
             kept.g.data<W>(), dropout, to.x.to.out<W>(), to.f.to.out<T>(), to.g.to.data<W>(),
             to.b.to.data<W>(), to.x.fold, to.f.fold, to.g.fold, to.b.fold, kept.type});
  });
}

}  // namespace

Tensor residual_norm(const Tensor& x, const Tensor& f, const Dropout& dropout, const Tensor& g,
                     const Tensor& b, double epsilon) {
  assert(x.cols() == g.elements() && (!b || g.elements() == b.elements()));
  Tensor y = Tensor::like(x);
  const Tensor rounded = bf16_activations(x.device()) ? y.make_rounded() : Tensor();
  SavedTensors kept{{}, {}, g, b ? NormType::layer : NormType::rms};
  if (Tape::live()) {
    kept.normalised = Tensor::like(f ? f : x);
    kept.inverse_deviation = Tensor({x.rows()}, x.type(), x.device());
  }
  run_activation(f ? f : x, [&]<class T>(auto on, T) {
    using W = SumType<T>;
    kernel::norm<T>(on,
                    {x.in<W>(), f.in<T>(), dropout, g.data<W>(), b.data<W>(), epsilon, kept.type},
                    {y.out<W>(), rounded.out<bf16>(), kept.normalised.out<T>(),
                     kept.inverse_deviation.data<W>()});
  });
  return record(
      y, {x, f, g, b},
      [=, to_x = x.slot(), to_f = f.slot(), to_g = g.slot(), to_b = b.slot()](const Tensor& dy) {
        gather_if(to_g, [&](const GradientTarget& dg) {
          gather_if(to_b, [&](const GradientTarget& db) {
            gather_if(to_x, [&](const GradientTarget& dx) {
              gather_if(to_f, [&](const GradientTarget& df) {
                backward(kept, dy, dropout, {dx, df, dg, db});
              });
            });
          });
        });
      });
}

Tensor layer_norm(const Tensor& x, const Tensor& g, const Tensor& b, double epsilon) {
  return residual_norm(x, {}, {}, g, b, epsilon);
}

Tensor rms_norm(const Tensor& x, const Tensor& g, double epsilon) {
  return residual_norm(x, {}, {}, g, {}, epsilon);
}

Tensor residual_norm_reference(const Tensor& x, const Tensor& f, const Dropout& dropout,
                               const Tensor& g, const Tensor& b, double epsilon) {
  const Tensor z = residual(x, f, dropout);
  return b ? layer_norm(z, g, b, epsilon) : rms_norm(z, g, epsilon);
}

}  // namespace fovea
