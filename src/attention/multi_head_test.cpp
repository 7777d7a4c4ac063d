#include "attention/multi_head.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

TEST(MultiHead, Gradient) {
  const SentenceOffsets p = SentenceOffsets::of(std::vector<int32_t>{0, 2, 3, 7});
  const SentenceOffsets m = SentenceOffsets::of(std::vector<int32_t>{0, 1, 4, 5});
  for (const int64_t heads : {1, 3}) {
    ParameterStore store(ElementType::f64);
    const MultiHeadAttention attend(ParameterScope{store, ""}, {6, heads});
    store.allocate(1);
    store.allocate_gradients();
    const Tensor x = random_input({7, 6}, 1), memory = random_input({5, 6}, 2);
    std::vector<Tensor> inputs = parameters_of(store);
    inputs.push_back(x);
    for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
      expect_gradient(inputs, [&] { return attend(x, p, mask); });
    inputs.push_back(memory);
    expect_gradient(inputs, [&] { return attend(x, p, memory, m); });
  }
}

}  // namespace
}  // namespace fovea
