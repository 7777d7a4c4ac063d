#include "ops/focus.h"

#include <algorithm>
#include <cmath>

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Sentences, longest, queries, and something of its own.
const Shapes kLooks{.largest = {9, 60, 70, 12},
                    .large = {{64, 60, 64, 10}, {80, 33, 800, 3}, {5, 300, 1000, 20}}};

// What a case computes with: who looks where, and the ranges of whole sentences.
struct Looking {
  Lookup look;
  Ranges words;
  int64_t rows, columns;

  Looking(Trial& t, const Sizes& n)
      : look(t.lookup(n[0], n[1], n[2])), words(whole(look)), rows(n[2]), columns(look.columns()) {}
};

// Distributions over each row's own sentence, 0 beyond it.
Tensor distributions(Trial& t, const Looking& at) {
  const std::vector<double> lengths = at.look.lengths().values();
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

Tensor tracked_distributions(Trial& t, const Looking& at) {
  const Tensor p = t.input({at.rows, at.columns});
  p.assign(distributions(t, at).values());
  return p;
}

void expect_ranges(Trial& t, const std::string& name, const Ranges& ranges) {
  t.expect_integers(name + ", low", ranges.low);
  t.expect_integers(name + ", high", ranges.high);
}

TEST(Parity, Ranges) {
  Family family("ranges");
  family.check_forward("ranges", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    expect_ranges(t, "whole", at.words);
    expect_ranges(t, "reach", whole(at.look, n[3]));
    const Tensor p =
        t.constant({at.rows, 1}, 0.3 * static_cast<double>(n[1]), 0.5 * static_cast<double>(n[1]));
    expect_ranges(t, "around", around(p, n[3], at.words));
    const Tensor from = t.integers_below(at.rows, at.columns);
    expect_ranges(t, "onwards", onwards(from, n[3] / 2, at.words));
  });
  family.check_forward("choices", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const Tensor p = distributions(t, at);
    const Ranges late = t.late(at.look);
    t.expect_integers("highest", highest(p, at.words));
    t.expect_integers("highest of the late", highest(p, late));
    t.expect_integers("drawn", draw(p, at.words, t.dropout(1)));
    t.expect_integers("drawn again", draw(p, at.words, t.dropout(1)));
    t.expect("one hot", one_hot(highest(p, late), p));
  });
}

TEST(Parity, Focus) {
  Family family("focus");
  family.check("straight through", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const Tensor soft = tracked_distributions(t, at);
    t.expect("alpha", straight_through(one_hot(highest(soft, at.words), soft), soft));
  });
  family.check("log at, entropy", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const Tensor p = tracked_distributions(t, at);
    t.expect("log", log_at(p, highest(p, t.late(at.look))));
    t.expect("entropy", entropy(p));
  });
  family.check("first columns", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const int64_t width = t.drops() ? n[3] : at.columns + n[3];
    t.expect("e", first_columns(t.input({at.rows, width}), at.look));
  });
  family.check("gaussian", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const auto wide = static_cast<double>(n[1]);
    const Tensor p = t.input({n[2], 1}, 0.2 * wide, 0.5 * wide);
    t.expect("y", gaussian(p, static_cast<double>(n[3]) / 2, n[1]));
  });
  family.check("mixture", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const auto wide = static_cast<double>(n[1]);
    const Tensor alpha = t.input({at.rows, n[3]}), beta = t.input({at.rows, n[3]}, 0.5, -1),
                 kappa = t.input({at.rows, n[3]}, 0.2 * wide, 0.5 * wide);
    t.expect("phi", mixture(alpha, beta, kappa, at.look));
  });
}

// Numbers from 0 to 1.5, of which many are 0.
std::vector<double> shares(Trial& t, int64_t count) {
  std::vector<double> all(static_cast<size_t>(count));
  for (double& v : all) v = std::max(0.0, t.random().uniform(-0.5, 1.5));
  return all;
}

TEST(Parity, Rest) {
  Family family("rest");
  family.check("uncovered", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const Tensor covered = t.input({at.rows, at.columns});
    covered.assign(t.numbers(covered.shape(), shares(t, covered.elements())).values());
    t.expect("left", uncovered(covered, t.late(at.look)));
  });
  family.check("softmax of the rest", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Looking at(t, n);
    const Tensor e = t.input({at.rows, at.columns}, 2), left = t.input({at.rows, at.columns});
    std::vector<double> some = shares(t, left.elements());
    if (t.number() % 3 == 0)  // of every other row nothing is left
      for (size_t i = 0; i < some.size(); ++i)
        if (i / static_cast<size_t>(at.columns) % 2) some[i] = 0;
    left.assign(t.numbers(left.shape(), some).values());
    t.expect("alpha", softmax_of_rest(e, left, at.words));
  });
}

}  // namespace
}  // namespace fovea::parity
