#include "ops/alignment_loss.h"

#include <omp.h>

#include <cmath>

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

SentenceOffsets lengths(const std::vector<int32_t>& each) {
  std::vector<int32_t> offsets{0};
  for (const int32_t n : each) offsets.push_back(offsets.back() + n);
  return SentenceOffsets::of(offsets);
}

using EachLinks = std::vector<std::vector<int32_t>>;  // per query: its keys

AlignmentTargets targets_of(const EachLinks& links) {
  std::vector<int32_t> offsets{0}, keys;
  for (const std::vector<int32_t>& of_query : links) {
    keys.insert(keys.end(), of_query.begin(), of_query.end());
    offsets.push_back(static_cast<int32_t>(keys.size()));
  }
  return {Tensor::of(offsets), Tensor::of(keys)};
}

// Query n of a sentence with S keys is linked to min((n + 1) mod 4, S) of them, so some queries
// have no links.
AlignmentTargets some_links(const std::vector<int32_t>& queries, const std::vector<int32_t>& keys) {
  EachLinks links;
  for (size_t b = 0; b < queries.size(); ++b)
    for (int32_t n = 0; n < queries[b]; ++n) {
      links.emplace_back();
      for (int32_t j = 0; j < std::min((n + 1) % 4, keys[b]); ++j)
        links.back().push_back((3 * n + j) % keys[b]);
    }
  return targets_of(links);
}

TEST(AlignmentTargets, ByHand) {
  // The scores of the only query are 0 and log 3; the scale is 1/√1.
  const Tensor q = Tensor::of({1, 1}, std::vector{1.0}, ElementType::f64);
  const Tensor k = Tensor::of({2, 1}, std::vector{0.0, std::log(3.0)}, ElementType::f64);
  const auto loss = [&](const std::vector<int32_t>& links) {
    return guide_loss(q, k, lengths({1}), lengths({2}), targets_of({links})).values()[0];
  };
  EXPECT_NEAR(loss({0}), -std::log(0.25), 1e-12);
  EXPECT_NEAR(loss({1}), -std::log(0.75), 1e-12);
  EXPECT_NEAR(loss({0, 1}), -0.5 * (std::log(0.25) + std::log(0.75)), 1e-12);
  EXPECT_EQ(loss({}), 0);
}

struct Lengths {
  std::vector<int32_t> queries, keys;
};
const std::vector<Lengths> kLengths{{{1}, {1}}, {{1}, {5}}, {{5}, {1}}, {{3, 1, 4}, {2, 6, 3}}};

TEST(AlignmentTargets, Gradient) {
  for (const auto& [n, m] : kLengths) {
    const SentenceOffsets queries = lengths(n), keys = lengths(m);
    const AlignmentTargets targets = some_links(n, m);
    for (const int64_t size : {1, 6}) {
      const Tensor q = random_input({queries.tokens, size}, 1);
      const Tensor k = random_input({keys.tokens, size}, 2);
      const auto loss = [&] { return guide_loss(q, k, queries, keys, targets); };
      if (m == std::vector<int32_t>{1})  // a single key has weight 1: the gradient is 0
        EXPECT_EQ(GradientCheck({q, k}, loss).error(), 0);
      else
        expect_gradient({q, k}, loss);
    }
  }
}

TEST(AlignmentTargets, EqualsItsReference) {
  for (const auto& [n, m] : kLengths) {
    const SentenceOffsets queries = lengths(n), keys = lengths(m);
    const AlignmentTargets targets = some_links(n, m);
    const Tensor q = random_input({queries.tokens, 6}, 1), k = random_input({keys.tokens, 6}, 2);
    std::vector<std::vector<double>> results[2];
    for (const bool plain : {false, true}) {
      Tape tape;
      const Tensor loss = plain ? guide_loss_reference(q, k, queries, keys, targets)
                                : guide_loss(q, k, queries, keys, targets);
      tape.backward(loss);
      for (const Tensor& t : {loss, q.grad(), k.grad()}) results[plain].push_back(t.values());
      q.slot()->release();
      k.slot()->release();
    }
    for (size_t r = 0; r < results[0].size(); ++r)
      for (size_t i = 0; i < results[0][r].size(); ++i)
        EXPECT_NEAR(results[0][r][i], results[1][r][i], 1e-12) << r << ", " << i;
  }
}

TEST(AlignmentTargets, DoesNotDependOnThreads) {
  const std::vector<int32_t> n{30, 17, 1, 40}, m{25, 30, 12, 33};
  const SentenceOffsets queries = lengths(n), keys = lengths(m);
  const AlignmentTargets targets = some_links(n, m);
  const Tensor q = random_tensor({queries.tokens, 32}, 1, ElementType::f32);
  const Tensor k = random_tensor({keys.tokens, 32}, 2, ElementType::f32);
  q.track();
  k.track();
  std::vector<std::vector<double>> results[2];
  const int before = omp_get_max_threads();
  for (const int threads : {1, 4}) {
    omp_set_num_threads(threads);
    Tape tape;
    const Tensor loss = guide_loss(q, k, queries, keys, targets);
    tape.backward(loss);
    for (const Tensor& t : {loss, q.grad(), k.grad()}) results[threads > 1].push_back(t.values());
    q.slot()->release();
    k.slot()->release();
  }
  omp_set_num_threads(before);
  EXPECT_EQ(results[0], results[1]);
}

}  // namespace
}  // namespace fovea
