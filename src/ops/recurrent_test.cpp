#include "ops/recurrent.h"

#include <omp.h>

#include "gemm/gemm_kernel.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/shape.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

constexpr Cell kCells[] = {Cell::rnn, Cell::lstm, Cell::gru, Cell::gru_after};
constexpr Direction kDirections[] = {Direction::forward, Direction::backward};

TimeMajor of_lengths(const std::vector<int32_t>& lengths) {
  std::vector<int32_t> offsets{0};
  for (const int32_t n : lengths) offsets.push_back(offsets.back() + n);
  return TimeMajor::of(offsets);
}

// All inputs of a sequence, with gradients.
struct Example {
  RecurrentWeights cell;
  Tensor x, start;
  TimeMajor rows;

  Example(Cell kind, int64_t H, const std::vector<int32_t>& lengths,
          ElementType type = ElementType::f64)
      : rows(of_lengths(lengths)) {
    const double small = 1 / std::sqrt(static_cast<double>(H));  // keeps errors from growing
    cell = {kind, input({gates(kind) * H, H}, 1, type, small), {}};
    if (kind == Cell::gru_after) cell.b_n = input({H}, 2, type);
    x = input({rows.tokens(), gates(kind) * H}, 3, type);
    start = input({rows.sentences(), state_width(kind, H)}, 4, type);
  }
  static Tensor input(Shape shape, uint64_t seed, ElementType type, double scale = 0.7) {
    Tensor t = random_tensor(std::move(shape), seed, type, scale);
    t.track();
    return t;
  }
  std::vector<Tensor> parameters() const {
    std::vector<Tensor> all = {cell.U};
    if (cell.b_n) all.push_back(cell.b_n);
    return all;
  }
  std::vector<Tensor> inputs() const {
    std::vector<Tensor> all = parameters();
    all.push_back(x);
    all.push_back(start);
    return all;
  }
};

// The result of f, then the gradient of Σ weight × f() for every input.
std::vector<Tensor> all_of(const Example& e, const std::function<Tensor()>& f) {
  for (const Tensor& t : e.inputs()) t.slot()->release();
  Tape tape;
  const Tensor y = f();
  tape.backward(y, random_tensor(y.shape(), 77, y.type()));
  std::vector<Tensor> found = {y};
  for (const Tensor& t : e.inputs()) found.push_back(t.grad());
  return found;
}

TEST(TimeMajor, RowsByTimeAndFallingLength) {
  const TimeMajor rows = of_lengths({3, 5, 1, 3});
  EXPECT_EQ(rows.order, (std::vector<int32_t>{1, 0, 3, 2}));
  EXPECT_EQ(rows.first, (std::vector<int64_t>{0, 4, 7, 10, 11, 12}));
  EXPECT_EQ(rows.times(), 5);
  EXPECT_EQ(rows.alive(1), 3);
  EXPECT_EQ(rows.tokens(), 12);
  EXPECT_EQ(rows.from.values(), (std::vector<double>{3, 0, 9, 8, 4, 1, 10, 5, 2, 11, 6, 7}));
  EXPECT_EQ(rows.ends.values(), (std::vector<double>{11, 8, 9, 3}));
  const auto from = rows.from.values(), to = rows.to.values();
  for (size_t r = 0; r < from.size(); ++r)
    EXPECT_EQ(to[static_cast<size_t>(from[r])], static_cast<double>(r));
}

TEST(TimeMajor, OneSentenceAndOneWord) {
  const TimeMajor one = of_lengths({4});
  EXPECT_EQ(one.first, (std::vector<int64_t>{0, 1, 2, 3, 4}));
  EXPECT_EQ(one.ends.values(), (std::vector<double>{3}));
  const TimeMajor words = of_lengths({1, 1, 1});
  EXPECT_EQ(words.order, (std::vector<int32_t>{0, 1, 2}));
  EXPECT_EQ(words.first, (std::vector<int64_t>{0, 3}));
}

TEST(TimeMajor, RoundTripWithGradient) {
  const TimeMajor rows = of_lengths({2, 4, 1});
  const Tensor x = random_input({7, 3}, 1);
  auto there_and_back = [&] { return rows_at(rows_at(x, rows.from), rows.to); };
  EXPECT_EQ(there_and_back().values(), x.values());
  expect_gradient({x}, there_and_back);
}

TEST(TimeMajor, PermutedRowsWithGradient) {
  const std::vector<int32_t> offsets{0, 4, 8}, lengths{3, 4};
  const TimeMajor rows = TimeMajor::filled(offsets, lengths, Cpu{});
  const Tensor x = random_input({8, 3}, 1);
  const auto turn = [&] { return permuted_rows(x, rows.turned); };
  EXPECT_EQ(turn().values(), rows_at(x, rows.turned).values());
  EXPECT_EQ(permuted_rows(turn(), rows.turned).values(), x.values());
  expect_gradient({x}, turn);
  expect_gradient({x}, [&] { return turn() * rows_at(x, rows.from) + turn() * 0.5; });
}

TEST(RecurrentWeights, Gradient) {
  for (const Cell kind : kCells)
    for (const Direction direction : kDirections)
      for (const auto& lengths :
           {std::vector<int32_t>{3, 5, 1, 3}, std::vector<int32_t>{4}, std::vector<int32_t>{1}}) {
        const Example e(kind, 3, lengths);
        expect_gradient(e.inputs(),
                        [&] { return recurrent(e.cell, e.x, e.start, e.rows, direction); });
      }
}

TEST(RecurrentWeights, GradientWithoutStartAndWithoutInput) {
  for (const Cell kind : kCells) {
    Example e(kind, 2, {2, 3});
    std::vector<Tensor> inputs = e.parameters();
    inputs.push_back(e.x);
    expect_gradient(inputs,
                    [&] { return recurrent(e.cell, e.x, {}, e.rows, Direction::backward); });
    inputs.back() = e.start;
    e.x = e.x.view(e.x.shape());  // has no gradient
    expect_gradient(inputs,
                    [&] { return recurrent(e.cell, e.x, e.start, e.rows, Direction::forward); });
  }
}

TEST(RecurrentWeights, GradientIsAddedToEarlierGradients) {
  for (const Cell kind : kCells) {
    const Example e(kind, 2, {2, 1, 3});
    const int64_t H = 2;
    expect_gradient(e.inputs(), [&] {
      const Tensor there = recurrent(e.cell, e.x, e.start, e.rows, Direction::forward);
      const Tensor back = recurrent(e.cell, e.x, e.start, e.rows, Direction::backward);
      return columns(there, 0, H) * columns(back, 0, H) + columns(e.x, 0, H);
    });
  }
}

TEST(RecurrentWeights, FusedEqualsItsReference) {
  for (const Cell kind : kCells)
    for (const Direction direction : kDirections)
      for (const int64_t H : {1, 7, 33}) {
        const Example e(kind, H, {3, 11, 1, 6, 6, 9, 2, 5, 8, 1});
        const auto expected =
            all_of(e, [&] { return recurrent_reference(e.cell, e.x, e.start, e.rows, direction); });
        const auto found =
            all_of(e, [&] { return recurrent(e.cell, e.x, e.start, e.rows, direction); });
        for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(nmse(found[i], expected[i]), 1e-24);

        const Example f(kind, H, {3, 11, 1, 6, 6, 9, 2, 5, 8, 1}, ElementType::f32);
        const auto in_float =
            all_of(f, [&] { return recurrent(f.cell, f.x, f.start, f.rows, direction); });
        for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(nmse(in_float[i], expected[i]), 1e-10);
        EXPECT_LE(nmse(recurrent(e.cell, e.x, {}, e.rows, direction),
                       recurrent_reference(e.cell, e.x, {}, e.rows, direction)),
                  1e-24);
      }
}

TEST(RecurrentWeights, SentencesAreIndependent) {
  for (const Cell kind : kCells)
    for (const Direction direction : kDirections) {
      const Example e(kind, 4, {2, 5, 3});
      const Tensor all = rows_at(recurrent(e.cell, e.x, e.start, e.rows, direction), e.rows.to);
      const Tensor words = rows_at(e.x, e.rows.to);
      const TimeMajor one = of_lengths({5});  // the second sentence, which has sorted position 0
      const Tensor alone =
          recurrent(e.cell, words.window(2, 5), e.start.window(0, 1), one, direction);
      EXPECT_LE(nmse(alone, all.window(2, 5)), 1e-28);
    }
}

TEST(RecurrentStep, GradientIfOnlySomeRowsContinue) {
  for (const Cell kind : kCells)
    for (const int64_t going : {1, 2, 4}) {
      const Example e(kind, 3, {1, 1, 1, 1});
      const Tensor x = random_input({going, gates(kind) * 3}, 5);
      std::vector<Tensor> inputs = e.parameters();
      inputs.push_back(x);
      inputs.push_back(e.start);
      expect_gradient(inputs, [&] { return recurrent_step(e.cell, x, e.start); });
      expect_gradient(inputs, [&] {  // two steps from one start state
        const Tensor once = recurrent_step(e.cell, x, e.start);
        return once + rows(e.start, 0, going) * recurrent_step(e.cell, x, e.start);
      });
    }
}

TEST(RecurrentStep, StepsEqualTheSequence) {
  for (const Cell kind : kCells) {
    const Example e(kind, 5, {2, 4, 4, 1});
    const auto expected =
        all_of(e, [&] { return recurrent(e.cell, e.x, e.start, e.rows, Direction::forward); });
    const auto found = all_of(e, [&] {
      std::vector<Tensor> states;
      for (int64_t t = 0; t < e.rows.times(); ++t)
        states.push_back(recurrent_step(e.cell, rows(e.x, e.rows.first[t], e.rows.alive(t)),
                                        t ? states.back() : e.start));
      return concat_rows(states);
    });
    for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(nmse(found[i], expected[i]), 1e-26);
  }
}

TEST(RecurrentWeights, DoesNotDependOnThreads) {
  const int threads = omp_get_max_threads();
  std::vector<int32_t> lengths;
  for (int32_t i = 0; i < 70; ++i) lengths.push_back(1 + i * 7 % 5);
  for (const Cell kind : kCells) {
    const Example e(kind, 130, lengths, ElementType::f32);
    auto run_with = [&](int n) {
      omp_set_num_threads(n);
      return all_of(e,
                    [&] { return recurrent(e.cell, e.x, e.start, e.rows, Direction::backward); });
    };
    const auto one = run_with(1), four = run_with(4);
    omp_set_num_threads(threads);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i].values(), four[i].values());
  }
}

TEST(RecurrentWeights, ProductsOfBf16AreClose) {
  if (!kernel::has_fast_bf16(Cpu{})) GTEST_SKIP() << "this processor has no fast bf16 products";
  for (const Cell kind : kCells) {
    const Example e(kind, 40, {3, 9, 1, 6, 6, 9}, ElementType::f32);
    auto f = [&] { return recurrent(e.cell, e.x, e.start, e.rows, Direction::forward); };
    const auto expected = all_of(e, f);
    const PrecisionScope scope(Precision::bf16);
    const auto found = all_of(e, f);
    EXPECT_GT(nmse(found[0], expected[0]), 0);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_LE(nmse(found[i], expected[i]), 1e-4);
  }
}

TEST(RecurrentWeights, AnLstmRemembersAndForgets) {
  const RecurrentWeights cell{Cell::lstm, Tensor::zeros({4, 1}, ElementType::f64), {}};
  const Tensor start = Tensor::of({1, 2}, std::vector<double>{0, 5}, ElementType::f64);
  auto step = [&](double i, double f, double g, double o) {
    return recurrent_step(
               cell, Tensor::of({1, 4}, std::vector<double>{i, f, g, o}, ElementType::f64), start)
        .values();
  };
  EXPECT_NEAR(step(-50, 50, 3, 50)[1], 5, 1e-12);   // c is kept
  EXPECT_NEAR(step(-50, -50, 3, 50)[1], 0, 1e-12);  // c is forgotten
  EXPECT_NEAR(step(50, 50, 0.5, 50)[1], 5 + std::tanh(0.5), 1e-12);
  EXPECT_NEAR(step(-50, 50, 3, 50)[0], std::tanh(5), 1e-12);
  EXPECT_NEAR(step(-50, 50, 3, -50)[0], 0, 1e-12);
}

}  // namespace
}  // namespace fovea
