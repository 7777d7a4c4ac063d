#include "ops/shape.h"

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Rows and columns of the parts.
const Shapes kParts{.largest = {60, 90, 50, 70},
                    .large = {{2000, 512, 300, 128}, {1, 10007, 1, 3}}};

TEST(Parity, Shape) {
  Family family("shape");
  family.check("reshaped", Bar::elementwise, kParts, [](Trial& t, const Sizes& n) {
    t.expect("y", reshape(t.input({n[0], n[1]}), {n[1], n[0]}));
  });
  family.check("parts", Bar::elementwise, kParts, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0] + n[2], n[1] + n[3]});
    t.expect("rows", rows(x, n[2], n[0]));
    t.expect("columns", columns(x, n[3], n[1]));
    t.expect("first columns", columns(x, 0, n[3]));
  });
  family.check("joined", Bar::elementwise, kParts, [](Trial& t, const Sizes& n) {
    const Tensor a = t.input({n[0], n[1]}), b = t.input({n[2], n[1]}), c = t.input({n[0], n[3]});
    t.expect("below", concat_rows({a, b, a}));
    t.expect("beside", concat_columns({a, c}));
  });
  family.check_forward("copied", Bar::elementwise, kParts, [](Trial& t, const Sizes& n) {
    const Tensor from = t.constant({n[0], n[1] + n[3]}), to = t.constant({n[0], n[1]});
    copy_columns(from, n[3], to);
    t.expect("to", to);
  });
}

}  // namespace
}  // namespace fovea::parity
