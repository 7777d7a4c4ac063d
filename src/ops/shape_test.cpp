#include "ops/shape.h"

#include "ops/elementwise.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(Shape, Gradient) {
  const Tensor x = random_input({4, 6}, 1), y = random_input({4, 3}, 2),
               z = random_input({2, 6}, 3);
  expect_gradient({x}, [&] { return rows(x, 1, 2); });
  expect_gradient({x}, [&] { return columns(x, 2, 3); });
  expect_gradient({x}, [&] { return reshape(x, {2, 3, 4}); });
  expect_gradient({x, y}, [&] { return concat_columns({x, y, x}); });
  expect_gradient({x, z}, [&] { return concat_rows({z, x}); });
  expect_gradient({x}, [&] { return columns(x, 0, 3) * columns(x, 3, 3); });
}

TEST(Shape, PartsKeepTheirPlaces) {
  const Tensor x = Tensor::of({2, 3}, std::vector<double>{1, 2, 3, 4, 5, 6}, ElementType::f32);
  EXPECT_EQ(columns(x, 1, 2).values(), (std::vector<double>{2, 3, 5, 6}));
  EXPECT_EQ(rows(x, 1, 1).values(), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(concat(x, x).values(), (std::vector<double>{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

}  // namespace
}  // namespace fovea
