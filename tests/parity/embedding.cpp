#include "ops/embedding.h"

#include "ops/recurrent.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

// Rows, words of the table, width, words of the input: with a small table most words occur several
// times.
const Shapes kTables{
    .largest = {300, 100, 130, 40},
    .large = {{3000, 4000, 64, 100}, {3000, 1, 64, 7}, {1000, 32003, 33, 60}, {400, 50, 600, 9}}};

TEST(Parity, Embedding) {
  Family family("embedding");
  family.check("words", Bar::elementwise, kTables, [](Trial& t, const Sizes& n) {
    const Tensor E = t.input({n[1], n[2]});
    t.expect("y", embed(E, {}, {t.integers_below(n[0], n[1]), {}, 1, {}}));
  });
  family.check(
      "words and places, dropped", Bar::elementwise, kTables, [](Trial& t, const Sizes& n) {
        const Tensor E = t.input({n[1], n[2]}), P = t.input({n[3], n[2]});
        const Tensor ids = t.integers_below(n[0], n[1]), places = t.integers_below(n[0], n[3]);
        t.expect("y", embed(E, P, {ids, places, 1.7, t.dropout(0.2)}));
      });
  family.check("words and fixed places", Bar::elementwise, kTables, [](Trial& t, const Sizes& n) {
    const Tensor E = t.input({n[1], n[2]}), P = t.constant({n[3], n[2]});
    const Tensor ids = t.integers_below(n[0], n[1]), places = t.integers_below(n[0], n[3]);
    t.expect("y", embed(E, P, {ids, places, 0.5, {}}));
  });
  family.check("chosen rows", Bar::elementwise, kTables, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[1], n[2]});
    t.expect("y", rows_at(x, t.integers_below(n[0], n[1])));
  });
}

}  // namespace
}  // namespace fovea::parity
