#include "ops/ragged_attention.h"

#include "ops/attention_window.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

// Sentences, longest, queries, width.
const Shapes kShapes{.largest = {9, 50, 60, 130},
                     .large = {{64, 60, 64, 512},
                               {80, 33, 80, 1000},
                               {5, 300, 1000, 64},
                               {1, 1, 700, 33},
                               {9, 20, 1100, 64}}};

TEST(Parity, RaggedQueries) {
  Family family("lookup");
  family.check("dot scores", Bar::products, kShapes, [](Trial& t, const Sizes& n) {
    const RaggedQueries ragged = t.lookup(n[0], n[1], n[2]);
    const Tensor q = t.input({n[2], n[3]}), keys = t.input({ragged.memory.tokens, n[3]});
    t.expect("e", dot_scores(q, keys, ragged));
  });
  family.check("additive scores", Bar::products, kShapes, [](Trial& t, const Sizes& n) {
    const RaggedQueries ragged = t.lookup(n[0], n[1], n[2]);
    const Tensor q = t.input({n[2], n[3]}), keys = t.input({ragged.memory.tokens, n[3]});
    t.expect("e", additive_scores(q, keys, t.input({n[3]}), ragged));
  });
  family.check("weighted sum", Bar::products, kShapes, [](Trial& t, const Sizes& n) {
    const RaggedQueries ragged = t.lookup(n[0], n[1], n[2]);
    const Tensor alpha = t.input({n[2], ragged.columns()}, 0.1, 0.3);
    t.expect("c", weighted_sum(alpha, t.input({ragged.memory.tokens, n[3]}), ragged));
  });
  family.check("softmax within", Bar::elementwise, kShapes, [](Trial& t, const Sizes& n) {
    const RaggedQueries ragged = t.lookup(n[0], n[1], n[2]);
    const Tensor e = t.input({n[2], ragged.columns()}, 3);
    t.expect("full range", softmax_within(e, full_range(ragged)));
    t.expect("late", softmax_within(e, t.late(ragged)));
    t.expect_integers("lengths", ragged.lengths());
  });
}

}  // namespace
}  // namespace fovea::parity
