#include "ops/norm.h"

#include "support/parity.h"

namespace fovea::parity {
namespace {

const Shapes kMatrices{
    .largest = {130, 700},
    .large = {{1000, 512}, {300, 1024}, {2000, 256}, {3, 8192}, {10007, 31}, {64, 2}}};

// The size of the inputs. With two columns, the two numbers minus their mean are opposite, and the
// gradient is only as large as ε is beside σ². For numbers as small as √ε it is large enough.
double scale_of(int64_t columns) { return columns < 3 ? 3e-3 : 1; }

struct Inputs {
  Tensor x, g, b;

  Inputs(Trial& t, const Sizes& n)
      : x(t.input({n[0], n[1]}, scale_of(n[1]), 0.3 * scale_of(n[1]))), g(t.input({n[1]}, 0.2, 1)),
        b(t.input({n[1]}, 0.2)) {}
};

TEST(Parity, Norm) {
  Family family("norm");
  family.check("layer norm", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    const Inputs in(t, n);
    t.expect("y", layer_norm(in.x, in.g, in.b));
  });
  family.check("residual norm", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    const Inputs in(t, n);
    const Tensor f = t.input({n[0], n[1]}, scale_of(n[1]));
    t.expect("y", residual_norm(in.x, f, {}, in.g, in.b));
  });
  family.check("residual norm, dropped", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    const Inputs in(t, n);
    const Tensor f = t.input({n[0], n[1]}, scale_of(n[1]));
    t.expect("y", residual_norm(in.x, f, t.dropout(0.3), in.g, in.b));
  });
  family.check("RMSNorm", Bar::elementwise, kMatrices, [](Trial& t, const Sizes& n) {
    const Inputs in(t, n);
    t.expect("y", rms_norm(in.x, in.g));
  });
  family.check("residual RMSNorm, dropped", Bar::elementwise, kMatrices,
               [](Trial& t, const Sizes& n) {
                 const Inputs in(t, n);
                 const Tensor f = t.input({n[0], n[1]}, scale_of(n[1]));
                 t.expect("y", residual_norm(in.x, f, t.dropout(0.3), in.g, {}));
               });
  family.check_forward("layer norm alone", Bar::elementwise, kMatrices,
                       [](Trial& t, const Sizes& n) {
                         const Inputs in(t, n);
                         t.expect("y", layer_norm(in.x, in.g, in.b));
                       });
}

}  // namespace
}  // namespace fovea::parity
