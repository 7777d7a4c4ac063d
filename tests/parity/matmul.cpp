#include "ops/matmul.h"

#include "ops/shape.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

// Rows, in, out.
const Shapes kProducts{
    .largest = {130, 140, 150},
    .large = {{1024, 256, 384}, {2048, 64, 512}, {64, 1024, 1003}, {8, 512, 8003}}};

TEST(Parity, Linear) {
  Family family("linear");
  family.check("without a bias", Bar::products, kProducts, [](Trial& t, const Sizes& n) {
    t.expect("y", linear(t.input({n[0], n[1]}), t.input({n[2], n[1]})));
  });
  family.check("with a bias", Bar::products, kProducts, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]}), W = t.input({n[2], n[1]});
    t.expect("y", linear(x, W, t.input({n[2]}, 3)));
  });
  family.check("of parameters, twice", Bar::products, kProducts, [](Trial& t, const Sizes& n) {
    const Tensor W = t.store().declare("W", {n[2], n[1]}, ParameterInit::glorot(n[1], n[2]));
    const Tensor b = t.store().declare("b", {n[2]}, ParameterInit::constant(0));
    t.ready(t.store());
    t.expect("first", linear(t.input({n[0], n[1]}), W, b));
    t.expect("second", linear(t.input({n[0], n[1]}), W, b));
  });
  family.check_forward(
      "of parameters, alone", Bar::products, kProducts, [](Trial& t, const Sizes& n) {
        const Tensor W = t.store().declare("W", {n[2], n[1]}, ParameterInit::glorot(n[1], n[2]));
        t.ready(t.store());
        for (const char* time : {"first", "second"})  // kept after the first
          t.expect(time, linear(t.constant({n[0], n[1]}), W));
      });
  // The number of rows is large enough that the gradient of W is computed before the last of them
  // (Note [Late weight gradients]). The reference computes one product.
  const Shapes many{.largest = {20, 9, 7, 5}, .large = {{500, 9, 7, 18}}, .few = 8};
  family.check("of parameters, many times", Bar::products, many, [](Trial& t, const Sizes& n) {
    const Tensor W = t.store().declare("W", {n[2], n[1]}, ParameterInit::glorot(n[1], n[2]));
    t.ready(t.store());
    std::vector<Tensor> x, y;
    for (int64_t i = 0; i < n[3]; ++i) x.push_back(t.input({n[0], n[1]}));
    if (t.type() == ElementType::f64) return t.expect("y", linear(concat_rows(x), W));
    for (const Tensor& part : x) y.push_back(linear(part, W));
    t.expect("y", concat_rows(y));
  });
  // Large enough for Note [Factors of whole packs].
  const Shapes uneven{.largest = {5, 6, 7},
                      .large = {{1100, 620, 1036}, {1024, 613, 1036}, {1024, 620, 1001}},
                      .few = 2};
  family.check("of uneven rows", Bar::products, uneven, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]}), W = t.input({n[2], n[1]});
    t.expect("y", linear(x, W));
    t.expect("with a bias", linear(x, W, t.input({n[2]}, 3)));
    const Tensor inner = linear(x, W, t.input({n[2]}, 3), OutputType::activation);
    t.expect("as an activation", inner);
    t.expect("of an activation", linear(inner, t.input({n[1], n[2]})));
  });
}

TEST(Parity, Matmul) {
  Family family("matmul");
  family.check("of two matrices", Bar::products, kProducts, [](Trial& t, const Sizes& n) {
    t.expect("y", matmul(t.input({n[0], n[1]}), t.input({n[1], n[2]})));
  });
  const Shapes batches{.largest = {6, 30, 40, 50}, .large = {{16, 64, 65, 66}}};
  family.check("of a batch", Bar::products, batches, [](Trial& t, const Sizes& n) {
    t.expect("y", matmul(t.input({n[0], n[1], n[2]}), t.input({n[0], n[2], n[3]})));
  });
  family.check("of a batch with one", Bar::products, batches, [](Trial& t, const Sizes& n) {
    t.expect("y", matmul(t.input({n[0], n[1], n[2]}), t.input({n[2], n[3]})));
  });
  family.check("transposed", Bar::elementwise, batches, [](Trial& t, const Sizes& n) {
    t.expect("one", transpose(t.input({n[1], n[3]})));
    t.expect("several", transpose(t.input({n[0], n[1], n[2]})));
  });
}

}  // namespace
}  // namespace fovea::parity
