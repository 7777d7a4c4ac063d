#include "ops/lookup.h"

#include "ops/focus.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

// Sentences, longest, queries, width.
const Shapes kLooks{.largest = {9, 50, 60, 130},
                    .large = {{64, 60, 64, 512},
                              {80, 33, 80, 1000},
                              {5, 300, 1000, 64},
                              {1, 1, 700, 33},
                              {9, 20, 1100, 64}}};

TEST(Parity, Lookup) {
  Family family("lookup");
  family.check("dot scores", Bar::products, kLooks, [](Trial& t, const Sizes& n) {
    const Lookup look = t.lookup(n[0], n[1], n[2]);
    const Tensor q = t.input({n[2], n[3]}), keys = t.input({look.memory.tokens, n[3]});
    t.expect("e", dot_scores(q, keys, look));
  });
  family.check("additive scores", Bar::products, kLooks, [](Trial& t, const Sizes& n) {
    const Lookup look = t.lookup(n[0], n[1], n[2]);
    const Tensor q = t.input({n[2], n[3]}), keys = t.input({look.memory.tokens, n[3]});
    t.expect("e", additive_scores(q, keys, t.input({n[3]}), look));
  });
  family.check("weighted sum", Bar::products, kLooks, [](Trial& t, const Sizes& n) {
    const Lookup look = t.lookup(n[0], n[1], n[2]);
    const Tensor alpha = t.input({n[2], look.columns()}, 0.1, 0.3);
    t.expect("c", weighted_sum(alpha, t.input({look.memory.tokens, n[3]}), look));
  });
  family.check("softmax within", Bar::elementwise, kLooks, [](Trial& t, const Sizes& n) {
    const Lookup look = t.lookup(n[0], n[1], n[2]);
    const Tensor e = t.input({n[2], look.columns()}, 3);
    t.expect("whole", softmax_within(e, whole(look)));
    t.expect("late", softmax_within(e, t.late(look)));
    t.expect_integers("lengths", look.lengths());
  });
}

}  // namespace
}  // namespace fovea::parity
