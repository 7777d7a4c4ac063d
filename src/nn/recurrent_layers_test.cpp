#include "nn/recurrent_layers.h"

#include "ops/dropout.h"
#include "ops/elementwise.h"
#include "ops/shape.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

constexpr Cell kCells[] = {Cell::rnn, Cell::lstm, Cell::gru, Cell::gru_after};

TimeMajor ragged() { return TimeMajor::of(std::vector<int32_t>{0, 3, 7, 8}); }

struct Stack {
  ParameterStore store{ElementType::f64};
  RecurrentStack read;

  explicit Stack(const RecurrentStack::Sizes& sizes)
      : read(ParameterScope{store, "encoder"}, sizes) {
    store.allocate(1);
    store.allocate_gradients();
    for (const Tensor& b : parameters_of(store))  // zero biases would hide errors
      if (b.rank() == 1) b.assign(random_tensor(b.shape(), 5).values());
  }
};

TEST(RecurrentStack, GradientOfStatesAndLastStates) {
  for (const Cell kind : kCells)
    for (const EncoderDirections reading :
         {EncoderDirections::forward, EncoderDirections::both_ways}) {
      const TimeMajor words = ragged();
      const Stack stack({kind, 3, 2, 2, reading});
      const Tensor x = random_input({8, 3}, 2);
      std::vector<Tensor> inputs = parameters_of(stack.store);
      inputs.push_back(x);
      expect_gradient(inputs, [&] {
        const auto found = stack.read(x, words);
        std::vector<Tensor> parts = found.last;  // all of width 2, or 4 for an LSTM
        for (int64_t d = 0; d < stack.read.directions; ++d) {
          const Tensor h = columns(found.h, d * 2, 2);
          parts.push_back(kind == Cell::lstm ? concat_columns({h, h}) : h);
        }
        return concat_rows(parts);
      });
    }
}

TEST(RecurrentStack, GradientThroughDropoutAndStarts) {
  const TimeMajor words = ragged();
  const Stack stack({Cell::gru, 3, 2, 2, EncoderDirections::both_ways, 0.4});
  const Tensor x = random_input({8, 3}, 2);
  std::vector<Tensor> inputs = parameters_of(stack.store), start;
  for (uint64_t i = 0; i < 4; ++i) start.push_back(random_input({3, 2}, 10 + i));
  inputs.insert(inputs.end(), start.begin(), start.end());
  inputs.push_back(x);
  const auto kept = stack.read(x, words, start).h.values();
  expect_gradient(inputs, [&] {
    const DropoutScope drop(7, 1);
    return stack.read(x, words, start).h;
  });
  const DropoutScope drop(7, 1);
  EXPECT_NE(stack.read(x, words, start).h.values(), kept);
  // Dropout lies between layers, so one layer has none.
  const Stack one({Cell::gru, 3, 2, 1, EncoderDirections::both_ways, 0.4});
  const auto dropped = one.read(x, words).h.values();
  EXPECT_EQ(one.read(x, words).h.values(), dropped);
}

TEST(RecurrentStack, LastStatesAreThoseOfTheLastWordsRead) {
  const TimeMajor words = ragged();  // lengths 3, 4, 1: rows 1, 0, 2
  const Stack stack({Cell::lstm, 3, 2, 1, EncoderDirections::both_ways});
  const Tensor x = random_tensor({8, 3}, 2);
  const auto found = stack.read(x, words);
  const auto h = rows_at(found.h, words.to).values();  // sentences one after another
  ASSERT_EQ(found.last.size(), 2u);
  const auto forward = found.last[0].values(), backward = found.last[1].values();
  const int32_t ends[] = {6, 2, 7}, begins[] = {3, 0, 7};
  for (size_t row = 0; row < 3; ++row)
    for (size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(forward[row * 4 + j], h[static_cast<size_t>(ends[row]) * 4 + j]);
      EXPECT_EQ(backward[row * 4 + j], h[static_cast<size_t>(begins[row]) * 4 + 2 + j]);
    }
}

TEST(RecurrentStack, NamesAndSizes) {
  const Stack stack({Cell::gru_after, 3, 2, 2, EncoderDirections::both_ways});
  EXPECT_EQ(stack.read.out(), 4);
  ASSERT_NE(stack.store.find("encoder/0/forward/W"), nullptr);
  EXPECT_EQ(stack.store.find("encoder/0/backward/W")->tensor.shape(), (Shape{6, 3}));
  EXPECT_EQ(stack.store.find("encoder/1/backward/W")->tensor.shape(), (Shape{6, 4}));
  EXPECT_EQ(stack.store.find("encoder/1/forward/U")->tensor.shape(), (Shape{6, 2}));
  EXPECT_EQ(stack.store.find("encoder/1/forward/b_n")->tensor.shape(), (Shape{2}));
  EXPECT_EQ(stack.store.all().size(), 16u);
}

TEST(RecurrentCell, ForgetGatesStartOpen) {
  ParameterStore store(ElementType::f64);
  const RecurrentCell cell(ParameterScope{store, ""}, {Cell::lstm, 3, 2});
  store.allocate(1);
  EXPECT_EQ(cell.b.values(), (std::vector<double>{0, 0, 1, 1, 0, 0, 0, 0}));
}

TEST(RecurrentCell, GradientOfTwoStackedCells) {
  for (const Cell kind : kCells) {
    ParameterStore store(ElementType::f64);
    const RecurrentCell low(ParameterScope{store, "0"}, {kind, 3, 2}),
        high(ParameterScope{store, "1"}, {kind, 2, 2});
    store.allocate(1);
    store.allocate_gradients();
    const Tensor x = random_input({3, 3}, 2), first = random_input({3, low.width()}, 3);
    std::vector<Tensor> inputs = parameters_of(store);
    inputs.push_back(x);
    inputs.push_back(first);
    expect_gradient(inputs, [&] {  // two steps; one sentence ends after the first
      const Tensor a = low(x, first), s = high(low.h(a), first);
      const Tensor next = low(rows(x, 0, 2), a);
      return high(low.h(next), s);
    });
  }
}

TEST(RecurrentCell, GradientOfStepsThatShareTheirInput) {
  for (const Cell kind : kCells) {
    ParameterStore store(ElementType::f64);
    const RecurrentCell cell(ParameterScope{store, ""}, {kind, 3, 2});
    store.allocate(1);
    store.allocate_gradients();
    const Tensor x = random_input({2, gates(kind) * 2}, 2);
    const Tensor first = random_input({2, cell.width()}, 3);
    std::vector<Tensor> inputs = {cell.U, x, first};
    if (cell.b_n) inputs.push_back(cell.b_n);
    expect_gradient(inputs, [&] {  // deferred products must not see later gradients of x
      const Tensor s = recurrent_step(cell.recurrent(), x, first);
      return recurrent_step(cell.recurrent(), x, s) + columns(x, 0, 1);
    });
  }
}

TEST(RecurrentCell, StepsEqualTheLayer) {
  for (const Cell kind : kCells) {
    ParameterStore store(ElementType::f64);
    const RecurrentLayer layer{RecurrentCell(ParameterScope{store, ""}, {kind, 3, 5}),
                               Direction::forward};
    store.allocate(1);
    const TimeMajor words = ragged();
    const Tensor x = random_tensor({8, 3}, 2), start = random_tensor({3, layer.cell.width()}, 3);
    const Tensor all = layer(x, start, words);
    Tensor state = start;
    for (int64_t t = 0; t < words.times(); ++t) {
      state = layer.cell(x.window(words.first[t], words.alive(t)), state);
      EXPECT_LE(nmse(state, all.window(words.first[t], words.alive(t))), 1e-28);
    }
  }
}

}  // namespace
}  // namespace fovea
