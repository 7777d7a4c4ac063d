#include "ops/attention_window.h"

#include <algorithm>
#include <cmath>

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Sentences, longest, queries, and a parameter of the case.
const Shapes kShapes{.largest = {9, 60, 70, 12},
                     .large = {{64, 60, 64, 10}, {80, 33, 800, 3}, {5, 300, 1000, 20}}};

// The inputs of a case: the queries, and the ranges of whole sentences.
struct Inputs {
  RaggedQueries ragged;
  ColumnRanges words;
  int64_t rows, columns;

  Inputs(Trial& t, const Sizes& n)
      : ragged(t.lookup(n[0], n[1], n[2])), words(full_range(ragged)), rows(n[2]),
        columns(ragged.columns()) {}
};

// Distributions over each row's sentence, 0 beyond its end.
Tensor distributions(Trial& t, const Inputs& at) {
  const std::vector<double> lengths = at.ragged.lengths().values();
  std::vector<double> p(static_cast<size_t>(at.rows * at.columns), 0.0);
  for (size_t i = 0; i < lengths.size(); ++i) {
    double* row = p.data() + i * static_cast<size_t>(at.columns);
    const auto n = static_cast<size_t>(lengths[i]);
    double sum = 0;
    for (size_t j = 0; j < n; ++j) sum += row[j] = std::exp(t.random().normal());
    for (size_t j = 0; j < n; ++j) row[j] /= sum;
  }
  return t.numbers({at.rows, at.columns}, p);
}

Tensor tracked_distributions(Trial& t, const Inputs& at) {
  const Tensor p = t.input({at.rows, at.columns});
  p.assign(distributions(t, at).values());
  return p;
}

void expect_ranges(Trial& t, const std::string& name, const ColumnRanges& ranges) {
  t.expect_integers(name + ", low", ranges.low);
  t.expect_integers(name + ", high", ranges.high);
}

TEST(Parity, ColumnRanges) {
  Family family("ranges");
  family.check_forward("ranges", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    expect_ranges(t, "full range", at.words);
    expect_ranges(t, "reach", full_range(at.ragged, n[3]));
    const Tensor p =
        t.constant({at.rows, 1}, 0.3 * static_cast<double>(n[1]), 0.5 * static_cast<double>(n[1]));
    expect_ranges(t, "window", window_around(p, n[3], at.words));
    const Tensor from = t.integers_below(at.rows, at.columns);
    expect_ranges(t, "from", range_from(from, n[3] / 2, at.words));
  });
  family.check_forward("choices", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const Tensor p = distributions(t, at);
    const ColumnRanges late = t.late(at.ragged);
    t.expect_integers("argmax", argmax(p, at.words));
    t.expect_integers("argmax of late", argmax(p, late));
    t.expect_integers("drawn", draw(p, at.words, t.dropout(1)));
    t.expect_integers("drawn again", draw(p, at.words, t.dropout(1)));
    t.expect("one hot", one_hot(argmax(p, late), p));
  });
}

TEST(Parity, AttentionWindow) {
  Family family("focus");
  family.check("straight through", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const Tensor soft = tracked_distributions(t, at);
    t.expect("alpha", straight_through(one_hot(argmax(soft, at.words), soft), soft));
  });
  family.check("log at, entropy", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const Tensor p = tracked_distributions(t, at);
    t.expect("log", log_at(p, argmax(p, t.late(at.ragged))));
    t.expect("entropy", entropy(p));
  });
  family.check("first columns", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const int64_t width = t.drops() ? n[3] : at.columns + n[3];
    t.expect("e", first_columns(t.input({at.rows, width}), at.ragged));
  });
  family.check("gaussian", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const auto wide = static_cast<double>(n[1]);
    const Tensor p = t.input({n[2], 1}, 0.2 * wide, 0.5 * wide);
    t.expect("y", gaussian(p, static_cast<double>(n[3]) / 2, n[1]));
  });
  family.check("mixture", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const auto wide = static_cast<double>(n[1]);
    const Tensor alpha = t.input({at.rows, n[3]}), beta = t.input({at.rows, n[3]}, 0.5, -1),
                 kappa = t.input({at.rows, n[3]}, 0.2 * wide, 0.5 * wide);
    t.expect("phi", mixture(alpha, beta, kappa, at.ragged));
  });
}

// Numbers from 0 to 1.5, many of which are 0.
std::vector<double> shares(Trial& t, int64_t count) {
  std::vector<double> all(static_cast<size_t>(count));
  for (double& v : all) v = std::max(0.0, t.random().uniform(-0.5, 1.5));
  return all;
}

TEST(Parity, UncoveredSoftmax) {
  Family family("rest");
  family.check("uncovered", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const Tensor covered = t.input({at.rows, at.columns});
    covered.assign(t.numbers(covered.shape(), shares(t, covered.elements())).values());
    t.expect("left", uncovered(covered, t.late(at.ragged)));
  });
  family.check("softmax of the rest", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const Inputs at(t, n);
    const Tensor e = t.input({at.rows, at.columns}, 2), left = t.input({at.rows, at.columns});
    std::vector<double> some = shares(t, left.elements());
    if (t.number() % 3 == 0)  // cover all columns of every other row
      for (size_t i = 0; i < some.size(); ++i)
        if (i / static_cast<size_t>(at.columns) % 2) some[i] = 0;
    left.assign(t.numbers(left.shape(), some).values());
    t.expect("alpha", softmax_uncovered(e, left, at.words));
  });
}

}  // namespace
}  // namespace fovea::parity
