#include "ops/attention.h"

#include <algorithm>

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Sentences, longest, heads, d_k; and longest sentence of the keys.
const Shapes kBatches{.largest = {7, 60, 4, 40, 60},
                      .large = {{24, 50, 8, 64, 61},
                                {2, 700, 2, 64, 530},
                                {9, 37, 16, 64, 37},
                                {5, 129, 4, 128, 127},
                                {3, 65, 5, 96, 200},
                                {40, 7, 4, 32, 9},
                                {1, 300, 1, 256, 257}}};

struct Batch {
  SentenceOffsets queries, keys;
  Tensor q, kv;

  Batch(Trial& t, const Sizes& n)
      : queries(t.packing(t.lengths(n[0], n[1]))), keys(t.packing(t.lengths(n[0], n[4]))),
        q(t.input({queries.tokens, n[2] * n[3]})), kv(t.input({keys.tokens, 2 * n[2] * n[3]})) {}
};

Dropout dropout_of(Trial& t) { return t.drops() ? t.dropout(0.25) : Dropout{}; }

TEST(Parity, Attention) {
  Family family("attention");
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    family.check(mask == AttentionMask::causal ? "to oneself, back" : "to oneself", Bar::products,
                 kBatches, [mask](Trial& t, const Sizes& n) {
                   const SentenceOffsets sentences = t.packing(t.lengths(n[0], n[1]));
                   const Tensor qkv = t.input({sentences.tokens, 3 * n[2] * n[3]});
                   t.expect("y", self_attention(qkv, sentences, {n[2], mask, dropout_of(t)}));
                 });
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    family.check(mask == AttentionMask::causal ? "distances, back" : "distances", Bar::products,
                 kBatches, [mask](Trial& t, const Sizes& n) {
                   const SentenceOffsets sentences = t.packing(t.lengths(n[0], n[1]));
                   const Tensor qkv = t.input({sentences.tokens, 3 * n[2] * n[3]});
                   const Tensor scores = t.input({2 * n[1] - 1, n[2]});
                   const HeadsOptions options{n[2], mask, dropout_of(t), scores};
                   t.expect("y", self_attention(qkv, sentences, options));
                 });
  family.check("to others", Bar::products, kBatches, [](Trial& t, const Sizes& n) {
    const Batch b(t, n);
    const HeadsOptions options{n[2], AttentionMask::none, dropout_of(t)};
    t.expect("y", cross_attention(b.q, b.kv, b.queries, b.keys, options));
  });
  family.check_forward("without a tape", Bar::products, kBatches, [](Trial& t, const Sizes& n) {
    const Batch b(t, n);
    const SentenceOffsets sentences = t.packing(t.lengths(n[0], n[1]));
    const Tensor qkv = t.constant({sentences.tokens, 3 * n[2] * n[3]});
    t.expect("to others",
             cross_attention(b.q, b.kv, b.queries, b.keys, {n[2], AttentionMask::none, {}}));
    t.expect("to oneself", self_attention(qkv, sentences, {n[2], AttentionMask::causal, {}}));
  });
  family.check_forward("weights", Bar::products, kBatches, [](Trial& t, const Sizes& n) {
    const Batch b(t, n);
    const SentenceOffsets sentences = t.packing(t.lengths(n[0], n[1]));
    const Tensor qkv = t.constant({sentences.tokens, 3 * n[2] * n[3]});
    t.expect("to others", cross_attention_weights(b.q, b.kv, b.queries, b.keys,
                                                  {n[2], AttentionMask::none, {}}));
    t.expect("to oneself", self_attention_weights(qkv, sentences, {n[2], AttentionMask::none, {}}));
    t.expect("back", self_attention_weights(qkv, sentences, {n[2], AttentionMask::causal, {}}));
    const Tensor scores = t.constant({2 * n[1] - 1, n[2]});
    t.expect("distances",
             self_attention_weights(qkv, sentences, {n[2], AttentionMask::causal, {}, scores}));
  });
}

// Rows, longest row, heads, d_k, cached rows.
TEST(Parity, CachedRows) {
  if (device_under_test() != Device{Cpu{}}) GTEST_SKIP() << "GPUs have DecoderMemory: Decoding";
  Family family("remembered");
  const Shapes shapes{
      .largest = {40, 60, 4, 40, 90},
      .large = {{512, 37, 8, 64, 3000}, {4, 500, 16, 64, 600}, {70, 9, 2, 256, 80}}};
  family.check_forward("one query per row", Bar::products, shapes, [](Trial& t, const Sizes& n) {
    const Tensor q = t.constant({n[0], n[2] * n[3]}), kv = t.constant({n[4], 2 * n[2] * n[3]});
    const Tensor index = t.integers_below(n[0] * n[1], n[4]).view({n[0], n[1]});
    t.expect("y", attend_remembered(q, {kv, index, t.integers_below(n[0], n[1], 1)}, n[2]));
  });
}

}  // namespace
}  // namespace fovea::parity
