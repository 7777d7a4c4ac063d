#include "ops/embedding.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(Embedding, Gradient) {
  const Tensor E = random_input({9, 5}, 1), P = random_input({4, 5}, 2);
  const Tensor ids = Tensor::of(std::vector<int32_t>{3, 0, 8, 3, 3, 1}),
               places = Tensor::of(std::vector<int32_t>{0, 1, 2, 0, 1, 3});
  expect_gradient({E, P}, [&] { return embed(E, P, {ids, places, 1.7, {}}); });
  expect_gradient({E}, [&] { return embed(E, {}, {ids, places, 1, {}}); });
  expect_gradient({E, P}, [&] { return embed(E, P, {ids, places, 2, {0.4f, 1, 2, 3}}); });
}

TEST(Embedding, RowsAreScaledAndPlaced) {
  const Tensor E = Tensor::of({2, 2}, std::vector<double>{1, 2, 3, 4}, ElementType::f32);
  const Tensor P = Tensor::of({2, 2}, std::vector<double>{10, 20, 30, 40}, ElementType::f32);
  const Tensor y = embed(
      E, P,
      {Tensor::of(std::vector<int32_t>{1, 0}), Tensor::of(std::vector<int32_t>{0, 1}), 2, {}});
  EXPECT_EQ(y.values(), (std::vector<double>{16, 28, 32, 44}));
}

}  // namespace
}  // namespace fovea
