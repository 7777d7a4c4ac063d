#include "ops/recurrent.h"

#include <cmath>

#include "ops/recurrent_linear.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

const std::pair<const char*, Cell> kCells[] = {
    {"rnn", Cell::rnn}, {"lstm", Cell::lstm}, {"gru", Cell::gru}, {"gru-after", Cell::gru_after}};

RecurrentWeights cell_of(Trial& t, Cell kind, int64_t H) {
  const Tensor U = t.input({gates(kind) * H, H}, 0.5 / std::sqrt(static_cast<double>(H)));
  return {kind, U, kind == Cell::gru_after ? t.input({H}, 0.3) : Tensor()};
}

// Sentences, longest, H.
const Shapes kBatches{
    .largest = {20, 15, 60},
    .large = {{32, 20, 256}, {80, 9, 96}, {3, 120, 64}, {70, 5, 33}, {9, 5, 300}},
};

TEST(Parity, RecurrentWeights) {
  Family family("recurrent");
  for (const auto& [name, kind] : kCells)
    for (const Direction direction : {Direction::forward, Direction::backward})
      family.check(std::string(name) + (direction == Direction::forward ? "" : ", backward"),
                   Bar::products, kBatches, [kind = kind, direction](Trial& t, const Sizes& n) {
                     const TimeMajor rows =
                         TimeMajor::of(Trial::offsets(t.lengths(n[0], n[1])), t.device());
                     const RecurrentWeights cell = cell_of(t, kind, n[2]);
                     const Tensor x = t.input({rows.tokens(), gates(kind) * n[2]});
                     const Tensor start =
                         t.number() % 3 ? t.input({n[0], state_width(kind, n[2])}) : Tensor();
                     t.expect("states", recurrent(cell, x, start, rows, direction));
                   });
  for (const auto& [name, kind] : kCells) {
    const auto step = [kind = kind](Trial& t, const Sizes& n) {
      const RecurrentWeights cell = cell_of(t, kind, n[2]);
      const Tensor x = t.input({n[0], gates(kind) * n[2]});
      const Tensor before = t.input({n[0] + t.number() % 3, state_width(kind, n[2])});
      t.expect("states", recurrent_step(cell, x, before));
    };
    family.check(std::string(name) + ", one step", Bar::products, kBatches, step);
    family.check_forward(std::string(name) + ", one step alone", Bar::products, kBatches, step);
  }
}

TEST(Parity, TimeMajor) {
  Family family("time major");
  family.check_forward("order", Bar::elementwise, kBatches, [](Trial& t, const Sizes& n) {
    const TimeMajor rows = TimeMajor::of(Trial::offsets(t.lengths(n[0], n[1])), t.device());
    t.expect_integers("from", rows.from);
    t.expect_integers("to", rows.to);
    t.expect_integers("ends", rows.ends);
  });
  family.check("turned rows", Bar::elementwise, kBatches, [](Trial& t, const Sizes& n) {
    const std::vector<int32_t> own = t.lengths(n[0], n[1]);
    const std::vector<int32_t> filled(own.size(), static_cast<int32_t>(n[1]));
    const TimeMajor rows = TimeMajor::filled(Trial::offsets(filled), own, t.device());
    const Tensor x = t.input({rows.tokens(), n[2]});
    t.expect("once", permuted_rows(x, rows.turned));
    t.expect("twice", permuted_rows(permuted_rows(x, rows.turned), rows.turned));
  });
}

// Rows, in, out.
TEST(Parity, StepLinear) {
  Family family("step linear");
  const Shapes shapes{.largest = {70, 60, 60}, .large = {{64, 512, 1536}, {33, 1000, 120}}};
  family.check("product", Bar::products, shapes, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]}), W = t.input({n[2], n[1]});
    t.expect("y", step_linear(x, W, t.number() % 3 ? t.input({n[2]}) : Tensor()));
  });
  family.check("onto others", Bar::products, shapes, [](Trial& t, const Sizes& n) {
    const int64_t first = t.number() % 5;
    const Tensor x = t.input({n[0] + 2 * first, n[2]}), a = t.input({n[0], n[1]}),
                 W = t.input({n[2], n[1]});
    t.expect("y", step_linear_onto(x, first, a, W));
  });
  family.check("the same weights twice", Bar::products, shapes, [](Trial& t, const Sizes& n) {
    const Tensor W = t.store().declare("W", {n[2], n[1]}, ParameterInit::glorot(n[1], n[2]));
    t.ready(t.store());
    t.expect("first", step_linear(t.input({n[0], n[1]}), W));
    t.expect("second", step_linear(t.input({n[0], n[1]}), W));
  });
}

}  // namespace
}  // namespace fovea::parity
