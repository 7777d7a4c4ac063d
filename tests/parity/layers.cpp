#include "nn/layers.h"

#include "models/transformer.h"
#include "nn/positions.h"
#include "nn/recurrent_layers.h"
#include "support/network_settings.h"
#include "support/parity.h"

namespace fovea::parity {
namespace {

ParameterScope root(Trial& t) { return {t.store(), ""}; }

// Rows, in, out.
TEST(Parity, Layers) {
  Family family("layers");
  const Shapes shapes{.largest = {70, 80, 90}, .large = {{512, 256, 300}}};
  family.check("affine", Bar::products, shapes, [](Trial& t, const Sizes& n) {
    const Affine layer(root(t), n[1], n[2]);
    t.ready(t.store());
    t.expect("y", layer(t.input({n[0], n[1]})));
  });
  family.check("layer norm", Bar::elementwise, shapes, [](Trial& t, const Sizes& n) {
    const LayerNorm norm(root(t), n[1] + 2);
    t.ready(t.store());
    const Tensor x = t.input({n[0], n[1] + 2});
    t.expect("alone", norm(x));
    t.expect("after a residual", norm(x, t.input(x.shape()), 0.2));
  });
  for (const auto& [name, waves] : {std::pair("interleaved", SinusoidLayout::interleaved),
                                    {"half", SinusoidLayout::half},
                                    {"half-m1", SinusoidLayout::half_m1}})
    family.check_forward(std::string("sinusoids, ") + name, Bar::elementwise, shapes,
                         [waves = waves](Trial& t, const Sizes& n) {
                           const GrowingTable table =
                               sinusoid_table(waves, 2 * n[2] + 2, t.type(), t.device());
                           t.expect("rows", table.covering(n[0]).window(0, n[0]));
                           t.expect("more", table.covering(n[1]).window(0, n[1]));
                         });
}

// Rows, in, H − 7; and sentences.
TEST(Parity, RecurrentLayers) {
  Family family("recurrent nn");
  const Shapes shapes{.largest = {12, 30, 24, 9}, .large = {{20, 64, 96, 32}}};
  for (const auto& [name, kind] : {std::pair("rnn", Cell::rnn),
                                   {"lstm", Cell::lstm},
                                   {"gru", Cell::gru},
                                   {"gru-after", Cell::gru_after}}) {
    family.check(std::string(name) + ", one step", Bar::products, shapes,
                 [kind = kind](Trial& t, const Sizes& n) {
                   const RecurrentCell cell(root(t), {kind, n[1], n[2] + 7});
                   t.ready(t.store());
                   const Tensor before = t.input({n[0] + t.number() % 2, cell.width()});
                   const Tensor after = cell(t.input({n[0], n[1]}), before);
                   t.expect("states", after);
                   t.expect("h", cell.h(cell(t.input({n[0], n[1]}), after)));
                 });
    for (const EncoderDirections reading :
         {EncoderDirections::forward, EncoderDirections::both_ways})
      family.check(std::string(name) + (reading == EncoderDirections::forward ? "" : ", both ways"),
                   Bar::products, shapes, [kind = kind, reading](Trial& t, const Sizes& n) {
                     const RecurrentStack stack(root(t), {kind, n[1], n[2] + 7, 2, reading, 0.2});
                     t.ready(t.store());
                     const TimeMajor words =
                         TimeMajor::of(Trial::offsets(t.lengths(n[3], n[0])), t.device());
                     const auto read = stack(t.input({words.tokens(), n[1]}), words);
                     t.expect("h", read.h);
                     for (const Tensor& last : read.last) t.expect("last", last);
                   });
  }
}

// Rows, in, H − 7, steps. The number of rows is large enough that weight gradients are computed
// before the end of all steps (Note [Late weight gradients]).
TEST(Parity, LateGradients) {
  Family family("late gradients");
  const Shapes shapes{.largest = {12, 9, 5, 4}, .large = {{500, 7, 2, 18}}, .few = 8};
  for (const auto& [name, kind] : {std::pair("gru", Cell::gru), {"gru-after", Cell::gru_after}})
    family.check(name, Bar::products, shapes, [kind = kind](Trial& t, const Sizes& n) {
      const RecurrentCell cell(root(t), {kind, n[1], n[2] + 7});
      t.ready(t.store());
      Tensor states = t.input({n[0], cell.width()});
      for (int64_t step = 0; step < n[3]; ++step) states = cell(t.input({n[0], n[1]}), states);
      t.expect("states", states);
    });
}

// Sentences, longest source and target, heads, d_k − 7, inner. Norms of fewer numbers cancel.
const Shapes kBatches{.largest = {6, 14, 14, 4, 20, 60}, .large = {{9, 20, 23, 6, 25, 131}}};

ModelConfig config_of(const Sizes& n, NormPlace norm, Function f) {
  ModelConfig c;
  auto& own = transformer_of(c);
  own.heads = n[3], c.size = n[3] * (n[4] + 7), own.inner = n[5];
  own.norm = norm, own.activation = f;
  c.dropout = own.attention_dropout = own.activation_dropout = 0.2;
  return c;
}

// Target and source sentences with their rows.
struct Batch {
  SentenceOffsets target, source;
  Tensor y, memory;

  Batch(Trial& t, const Sizes& n)
      : target(t.packing(t.lengths(n[0], n[2]))), source(t.packing(t.lengths(n[0], n[1]))),
        y(t.input({target.tokens, n[3] * (n[4] + 7)})),
        memory(t.input({source.tokens, n[3] * (n[4] + 7)})) {}
};

TEST(Parity, MultiHead) {
  Family family("multi-head");
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    family.check(mask == AttentionMask::causal ? "to oneself, back" : "to oneself", Bar::products,
                 kBatches, [mask](Trial& t, const Sizes& n) {
                   const Batch b(t, n);
                   const MultiHeadAttention attend(root(t), {b.y.cols(), n[3], 0.2});
                   t.ready(t.store());
                   t.expect("y", attend(b.y, b.target, mask));
                 });
  family.check("to others", Bar::products, kBatches, [](Trial& t, const Sizes& n) {
    const Batch b(t, n);
    const MultiHeadAttention attend(root(t), {b.y.cols(), n[3], 0.2});
    t.ready(t.store());
    t.expect("y", attend(b.y, b.target, b.memory, b.source));
  });
}

const struct {
  const char* name;
  NormPlace norm;
  Function f;
} kKinds[] = {{"post-norm, relu", NormPlace::post, Function::relu},
              {"pre-norm, relu", NormPlace::pre, Function::relu},
              {"post-norm, gelu", NormPlace::post, Function::gelu},
              {"pre-norm, silu", NormPlace::pre, Function::silu}};

TEST(Parity, TransformerLayers) {
  Family family("transformer nn");
  for (const auto& kind : kKinds) {
    const std::string name = kind.name;
    const Bar bar = kind.f == Function::relu ? Bar::rough : Bar::products;
    family.check("feed forward, " + name, bar, kBatches, [&](Trial& t, const Sizes& n) {
      const ModelConfig c = config_of(n, kind.norm, kind.f);
      const FeedForward layer(root(t), c, transformer_of(c));
      const SubLayer add(root(t) / "norm", c, transformer_of(c));
      t.ready(t.store());
      t.expect("y", add(Batch(t, n).y, layer));
    });
    family.check("encoder layer, " + name, bar, kBatches, [&](Trial& t, const Sizes& n) {
      const ModelConfig c = config_of(n, kind.norm, kind.f);
      const EncoderLayer layer(root(t), c, transformer_of(c));
      t.ready(t.store());
      const Batch b(t, n);
      t.expect("y", layer(b.memory, b.source));
    });
    family.check("decoder layer, " + name, bar, kBatches, [&](Trial& t, const Sizes& n) {
      const ModelConfig c = config_of(n, kind.norm, kind.f);
      const DecoderLayer layer(root(t), c, transformer_of(c));
      t.ready(t.store());
      const Batch b(t, n);
      t.expect("y", layer(b.y, b.target, b.memory, b.source));
    });
  }
}

}  // namespace
}  // namespace fovea::parity
