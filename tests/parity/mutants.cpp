#include "attention/registry.h"
#include "models/transformer.h"
#include "nn/recurrent_layers.h"
#include "ops/attention.h"
#include "support/network_settings.h"
#include "support/parity.h"

// The sensitivity of the comparison. Every contribution to a gradient that one shape of a case has
// is mutated, one at a time and in several ways. In float32 every mutation must be found. In bf16
// only some contributions that are a hundredth too large are found, because rounding has a similar
// effect. A few other mutations in bf16 are too small beside the contributions that are added to
// them.
namespace fovea::parity {
namespace {

using Kind = GradientMutation::Kind;
const struct {
  Family::Mutant mutant;
  double least;  // percent of the mutations that bf16 must find
} kWays[] = {{{"1.01 times", Kind::scaled, 1.01}, 0},
             {{"1.05 times", Kind::scaled, 1.05}, 90},
             {{"other sign", Kind::sign}, 100},
             {{"no last row", Kind::masked}, 90},
             {{"one number off", Kind::one}, 90}};

// `contributions`: the least number of contributions.
void expect_seen(const char* name, const Sizes& sizes, const Family::Case& run,
                 int64_t contributions = 3) {
  const Family family(std::string("mutants of ") + name);
  for (const Precision precision : {Precision::f32, Precision::bf16}) {
    std::string line = precision == Precision::f32 ? "f32 " : "bf16";
    const char* before = ": ";
    for (const auto& way : kWays) {
      const Family::Mutants found = family.mutants(way.mutant, precision, sizes, run);
      const double least = precision == Precision::f32 ? 100 : way.least;
      line += before + std::to_string(found.caught) + " of " + std::to_string(found.all) + ' ' +
              way.mutant.name;
      before = ", ";
      EXPECT_GE(found.all, contributions);
      EXPECT_GE(100.0 * static_cast<double>(found.caught), least * static_cast<double>(found.all))
          << name << ' ' << line;
    }
    family.report(line);
  }
}

ParameterScope root(Trial& t) { return {t.store(), ""}; }

TEST(Parity, MutantsOfOps) {
  expect_seen("linear", {64, 70, 80}, [](Trial& t, const Sizes& n) {
    t.expect("y", linear(t.input({n[0], n[1]}), t.input({n[2], n[1]}), t.input({n[2]})));
  });
  expect_seen("self-attention", {3, 7, 2, 8}, [](Trial& t, const Sizes& n) {
    const SentenceOffsets words = t.packing(t.lengths(n[0], n[1]));
    const Tensor qkv = linear(t.input({words.tokens, 16}), t.input({3 * n[2] * n[3], 16}, 0.25));
    t.expect("y", self_attention(qkv, words, {n[2], AttentionMask::causal, {}}));
  });
}

TEST(Parity, MutantsOfLayers) {
  expect_seen(
      "decoder layer", {5, 9, 8, 32},
      [](Trial& t, const Sizes& n) {
        ModelConfig c;
        auto& own = transformer_of(c);
        own.heads = 2, c.size = n[3], own.inner = 20, own.activation = Function::gelu;
        c.dropout = own.attention_dropout = own.activation_dropout = 0.2;
        const DecoderLayer layer(root(t), c, own);
        t.ready(t.store());
        const SentenceOffsets target = t.packing(t.lengths(n[0], n[2])),
                              source = t.packing(t.lengths(n[0], n[1]));
        const Tensor y = t.input({target.tokens, n[3]}), memory = t.input({source.tokens, n[3]});
        t.expect("y", layer(y, target, memory, source));
      },
      31);
  expect_seen("gru", {9, 12, 10}, [](Trial& t, const Sizes& n) {
    const RecurrentCell cell(root(t), {Cell::gru, n[1], n[2]});
    t.ready(t.store());
    const Tensor after = cell(t.input({n[0], n[1]}), t.input({n[0], cell.width()}));
    t.expect("h", cell.h(cell(t.input({n[0], n[1]}), after)));
  });
}

TEST(Parity, MutantsOfMechanisms) {
  expect_seen("global additive", {5, 7, 12}, [](Trial& t, const Sizes& n) {
    AttentionConfig c;
    c.kind = "global", c.score = "additive", c.inner = n[2];
    const auto attention = make_attention(root(t), c, {n[2], n[2], n[1]});
    t.ready(t.store());
    const SentenceOffsets words = t.packing(t.lengths(n[0], n[1]));
    const SourceMemory memory = attention->remember(t.input({words.tokens, n[2]}), words);
    const AttentionResult at = attention->attend(
        {t.input({n[0], n[2]}), t.integers(std::vector<int32_t>{0, 1, 2, 3, 4})}, memory, {});
    t.expect("context", at.context);
  });
}

}  // namespace
}  // namespace fovea::parity
