#include "ops/attention.h"

#include <omp.h>

#include "ops/shape.h"
#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

SentenceOffsets lengths(const std::vector<int32_t>& each) {
  std::vector<int32_t> offsets{0};
  for (const int32_t n : each) offsets.push_back(offsets.back() + n);
  return SentenceOffsets::of(offsets);
}

TEST(Attention, GradientOfSelf) {
  for (const auto& each : {std::vector<int32_t>{1}, {3, 1, 4}})
    for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
      const SentenceOffsets p = lengths(each);
      const Tensor qkv = random_input({p.tokens, 3 * 6}, 1);
      for (const int64_t heads : {1, 2})
        expect_gradient({qkv}, [&] { return self_attention(qkv, p, {heads, mask, {}}); });
      expect_gradient({qkv}, [&] { return self_attention(qkv, p, {3, mask, {0.3f, 1, 2, 3}}); });
    }
}

TEST(Attention, GradientOfDistanceScores) {
  const SentenceOffsets p = lengths({3, 1, 4}), keys = lengths({2, 5, 1});
  const Tensor qkv = random_input({p.tokens, 3 * 6}, 1), scores = random_input({9, 2}, 2);
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    for (const Dropout& d : {Dropout{}, Dropout{0.3f, 1, 2, 3}})
      expect_gradient({qkv, scores}, [&] { return self_attention(qkv, p, {2, mask, d, scores}); });
  const Tensor fixed = random_tensor({p.tokens, 3 * 6}, 1);  // needs no gradient
  expect_gradient({scores}, [&] {
    return self_attention(fixed, p, {2, AttentionMask::none, {}, scores});
  });
  const Tensor q = random_input({p.tokens, 6}, 1), kv = random_input({keys.tokens, 12}, 2);
  expect_gradient({q, kv, scores}, [&] {
    return cross_attention(q, kv, p, keys, {2, AttentionMask::none, {}, scores});
  });
}

TEST(Attention, GradientOfCross) {
  const SentenceOffsets queries = lengths({2, 1, 3}), keys = lengths({1, 4, 2});
  const Tensor q = random_input({queries.tokens, 6}, 1), kv = random_input({keys.tokens, 12}, 2);
  const Dropout dropout{0.3f, 1, 2, 3};
  for (const Dropout& d : {Dropout{}, dropout})
    expect_gradient({q, kv}, [&] {
      return cross_attention(q, kv, queries, keys, {2, AttentionMask::none, d});
    });
}

// Values and gradients against plain operations: odd sizes, long sentences, several blocks.
TEST(Attention, FusedEqualsItsReference) {
  for (const auto& each : {std::vector<int32_t>{1}, {5}, {1, 17, 3}, {70, 2}, {130}})
    for (const int64_t D : {4, 12, 20, 64})
      for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
        const SentenceOffsets p = lengths(each);
        const HeadsOptions options{2, mask, {}};
        const Tensor qkv = random_input({p.tokens, 3 * D}, 1);
        const Tensor seed = random_tensor({p.tokens, D}, 2);
        const Tensor single = in_float(qkv);
        single.track();
        {
          Tape tape;
          const Tensor q = columns(qkv, 0, D), kv = columns(qkv, D, 2 * D);
          tape.backward(cross_attention_reference(q, kv, p, p, options), seed);
        }
        const auto expected = Tensor::of(qkv.shape(), qkv.grad().values(), ElementType::f64);
        qkv.slot()->release();
        Tape tape;
        const Tensor y = self_attention(qkv, p, options);
        tape.backward(y, seed);
        EXPECT_LE(nmse(qkv.grad(), expected), 1e-20);
        const Tensor fy = self_attention(single, p, options);
        EXPECT_LE(nmse(fy, y), 1e-7);
        tape.backward(fy, in_float(seed));
        EXPECT_LE(nmse(single.grad(), expected), 1e-7);
      }
}

// The same with distance scores, and their gradient.
TEST(Attention, DistanceScoresEqualTheReference) {
  for (const auto& each : {std::vector<int32_t>{1}, {1, 17, 3}, {70, 2}})
    for (const int64_t D : {6, 64})
      for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal}) {
        const SentenceOffsets p = lengths(each);
        const Tensor qkv = random_input({p.tokens, 3 * D}, 1);
        const Tensor scores = random_input({2 * p.longest + 3, 2}, 3);
        const HeadsOptions options{2, mask, {}, scores};
        const Tensor seed = random_tensor({p.tokens, D}, 2);
        std::vector<double> expected, expected_scores;
        Tensor y;
        {
          Tape tape;
          const Tensor q = columns(qkv, 0, D), kv = columns(qkv, D, 2 * D);
          y = cross_attention_reference(q, kv, p, p, options);
          tape.backward(y, seed);
          expected = qkv.grad().values(), expected_scores = scores.grad().values();
        }
        qkv.slot()->release(), scores.slot()->release();
        Tape tape;
        const Tensor fused = self_attention(qkv, p, options);
        EXPECT_LE(nmse(fused, y), 1e-24);
        tape.backward(fused, seed);
        const auto found = qkv.grad().values(), found_scores = scores.grad().values();
        for (size_t i = 0; i < found.size(); ++i) ASSERT_NEAR(found[i], expected[i], 1e-12);
        for (size_t i = 0; i < found_scores.size(); ++i)
          ASSERT_NEAR(found_scores[i], expected_scores[i], 1e-11);
      }
}

// Weights with equal keys are the softmax of the distance scores alone.
TEST(Attention, DistanceScoresAreIndexedByKeyMinusQuery) {
  const SentenceOffsets p = lengths({2});
  const Tensor qkv = Tensor::zeros({2, 3}, ElementType::f64);
  const Tensor scores =
      Tensor::of({3, 1}, std::vector<double>{std::log(2.0), 0, std::log(3.0)}, ElementType::f64);
  const auto w = self_attention_weights(qkv, p, {1, AttentionMask::none, {}, scores}).values();
  EXPECT_NEAR(w[0], 1.0 / 4, 1e-12);  // query 0: distances 0 and 1
  EXPECT_NEAR(w[1], 3.0 / 4, 1e-12);
  EXPECT_NEAR(w[2], 2.0 / 3, 1e-12);  // query 1: distances −1 and 0
  EXPECT_NEAR(w[3], 1.0 / 3, 1e-12);
}

TEST(Attention, WeightsSumToOneWithinTheSentence) {
  const SentenceOffsets p = lengths({3, 1, 5});
  const Tensor qkv = random_tensor({p.tokens, 24}, 1, ElementType::f32, 2);
  const auto w = self_attention_weights(qkv, p, {2, AttentionMask::causal, {}}).values();
  size_t at = 0;
  for (const int64_t n : {3, 1, 5})
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < n; ++i) {
        double sum = 0;
        for (int64_t j = 0; j < n; ++j, ++at) {
          sum += w[at];
          if (j > i) {
            EXPECT_EQ(w[at], 0);
          }
        }
        EXPECT_NEAR(sum, 1, 1e-6);
      }
  EXPECT_EQ(at, w.size());
}

// One query at a time over cached keys gives the same results as the whole sentence.
TEST(Attention, CachedRowsEqualTheWholeSentence) {
  const int64_t n = 9;
  const SentenceOffsets p = lengths({static_cast<int32_t>(n)});
  for (const int64_t D : {12, 48}) {  // heads of a few numbers, and of whole vectors
    const Tensor qkv = random_tensor({n, 3 * D}, 1);
    const Tensor whole = self_attention(qkv, p, {3, AttentionMask::causal, {}});
    const Tensor scores = random_tensor({2 * n + 5, 3}, 4);
    const Tensor by_distance = self_attention(qkv, p, {3, AttentionMask::causal, {}, scores});
    const Tensor kv = columns(qkv, D, 2 * D);
    for (int64_t i = 0; i < n; ++i) {
      std::vector<int32_t> index(static_cast<size_t>(i + 1));
      for (size_t j = 0; j < index.size(); ++j) index[j] = static_cast<int32_t>(j);
      const CachedRows memory{kv, Tensor::of(index).view({1, i + 1}),
                              Tensor::of(std::vector<int32_t>{static_cast<int32_t>(i + 1)})};
      const Tensor y = attend_remembered(rows(columns(qkv, 0, D), i, 1), memory, 3);
      EXPECT_LE(nmse(y, whole.window(i, 1)), 1e-24);
      const Tensor z = attend_remembered(rows(columns(qkv, 0, D), i, 1), memory, 3, scores);
      EXPECT_LE(nmse(z, by_distance.window(i, 1)), 1e-24);
    }
  }
}

TEST(Attention, DoesNotDependOnThreadsOrNeighbours) {
  const SentenceOffsets both = lengths({7, 20}), alone = lengths({20});
  const Tensor qkv = random_tensor({27, 48}, 1, ElementType::f32);
  const auto together = self_attention(qkv, both, {4, AttentionMask::none, {}}).values();
  omp_set_num_threads(1);
  const auto single =
      self_attention(qkv.window(7, 20), alone, {4, AttentionMask::none, {}}).values();
  omp_set_num_threads(omp_get_num_procs());
  EXPECT_TRUE(std::equal(single.begin(), single.end(), together.begin() + 7 * 16));
}

}  // namespace
}  // namespace fovea
