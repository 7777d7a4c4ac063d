#include "ops/topk.h"

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Rows, columns, k. Sometimes k exceeds the number of columns.
const Shapes kScores{.largest = {60, 300, 12},
                     .large = {{512, 8003, 5},
                               {4, 32003, 8},
                               {3, 100003, 64},
                               {1000, 40, 1},
                               {3, 400, 300},
                               {2, 3001, 600}}};

TEST(Parity, TopK) {
  Family family("top k");
  family.check_forward("top k", Bar::elementwise, kScores, [](Trial& t, const Sizes& n) {
    const TopK best = top_k(t.constant({n[0], n[1]}, 3), n[2]);
    t.expect("log sum", best.log_sum);
    t.expect("values", best.values);
    t.expect_integers("columns", best.columns);
  });
  family.check_forward("top k of equals", Bar::elementwise, kScores, [](Trial& t, const Sizes& n) {
    std::vector<double> few(static_cast<size_t>(n[0] * n[1]));
    for (double& v : few) v = static_cast<double>(t.random().below(7));
    const TopK best = top_k(t.numbers({n[0], n[1]}, few), n[2]);
    t.expect("values", best.values);
    t.expect_integers("columns", best.columns);
  });
  family.check_forward("mean of probabilities", Bar::elementwise, kScores,
                       [](Trial& t, const Sizes& n) {
                         std::vector<Tensor> scores;
                         for (int64_t i = 0; i < 1 + n[2] % 4; ++i)
                           scores.push_back(t.constant({n[0], n[1]}, 3));
                         t.expect("p", mean_probabilities(scores));
                       });
}

}  // namespace
}  // namespace fovea::parity
