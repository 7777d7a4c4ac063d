#include "ops/alignment_loss.h"

#include <algorithm>

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Zero to three links for each query.
AlignmentTargets some_links(Trial& t, const std::vector<int32_t>& queries,
                            const std::vector<int32_t>& keys) {
  std::vector<int32_t> offsets{0}, all;
  for (size_t b = 0; b < queries.size(); ++b)
    for (int32_t i = 0; i < queries[b]; ++i) {
      const auto count = std::min(static_cast<int32_t>(t.random().below(4)), keys[b]);
      const auto first = static_cast<int32_t>(t.random().below(static_cast<uint64_t>(keys[b])));
      for (int32_t j = 0; j < count; ++j) all.push_back((first + j) % keys[b]);
      offsets.push_back(static_cast<int32_t>(all.size()));
    }
  return {t.integers(offsets), t.integers(all)};
}

TEST(Parity, AlignmentLoss) {
  Family family("guide");
  // Sentences, longest of queries and keys, d_k.
  const Shapes shapes{.largest = {9, 40, 50, 70},
                      .large = {{64, 37, 41, 64}, {3, 500, 300, 32}, {9, 60, 70, 128}}};
  family.check("loss", Bar::products, shapes, [](Trial& t, const Sizes& n) {
    const auto from = t.lengths(n[0], n[1]), to = t.lengths(n[0], n[2]);
    const SentenceOffsets queries = t.packing(from), keys = t.packing(to);
    const Tensor q = t.input({queries.tokens, n[3]}), k = t.input({keys.tokens, n[3]});
    t.expect("loss", guide_loss(q, k, queries, keys, some_links(t, from, to)));
  });
}

}  // namespace
}  // namespace fovea::parity
