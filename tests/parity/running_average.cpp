#include "ops/running_average.h"

#include "ops/elementwise.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

TEST(Parity, RunningAverage) {
  Family family("running average");
  // Sentences, longest, columns.
  const Shapes shapes{.largest = {9, 40, 130}, .large = {{64, 60, 512}, {2, 500, 300}}};
  family.check("of sentences", Bar::elementwise, shapes, [](Trial& t, const Sizes& n) {
    const SentenceOffsets sentences = t.packing(t.lengths(n[0], n[1]));
    const Tensor f = sigmoid(t.input({sentences.tokens, n[2]}));
    t.expect("c", running_average(f, t.input({sentences.tokens, n[2]}), sentences));
  });
}

}  // namespace
}  // namespace fovea::parity
