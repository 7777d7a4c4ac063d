#include "ops/attention.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/norm.h"
#include "support/parity.h"

// Operations that read the activations of linear layers, which a GPU stores in bf16.
namespace fovea::parity {
namespace {

constexpr int64_t kDepth = 16;  // of the products that compute the activations

const Shapes kMatrices{
    .largest = {70, 300},
    .large = {{500, 512}, {200, 1024}, {300, 256}, {700, 128}, {20, 2048}, {40, 1023}}};

Tensor activation(Trial& t, int64_t rows, int64_t columns) {
  return linear(t.input({rows, kDepth}), t.input({columns, kDepth}, 0.25), t.input({columns}, 0.2),
                OutputType::activation);
}

// Activations of about 8 or −8. Near 0, rounding would turn a gradient of relu on or off.
Tensor far_from_zero(Trial& t, int64_t rows, int64_t columns) {
  const Tensor x = t.input({rows, kDepth}), W = t.input({columns, kDepth}, 0.25);
  for (const auto& [factor, size] : {std::pair(x, 4.0), {W, 2.0}}) {
    std::vector<double> values = factor.values();
    for (size_t i = 0; i < values.size(); i += kDepth)
      values[i] = t.random().below(2) ? size : -size;
    factor.assign(values);
  }
  return linear(x, W, t.input({columns}, 0.2), OutputType::activation);
}

TEST(Parity, Activations) {
  Family family("activations");
  family.check("norm of a residual", Bar::products, kMatrices, [](Trial& t, const Sizes& n) {
    const int64_t width =
        n[1] + 15;  // the gradient of two normalised numbers would be 0, except for ε
    const Tensor x = t.input({n[0], width}), g = t.input({width}, 0.2, 1),
                 b = t.input({width}, 0.2);
    t.expect("y", residual_norm(x, activation(t, n[0], width), t.dropout(0.3), g, b));
  });
  family.check("residual", Bar::products, kMatrices, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]});
    t.expect("y", residual(x, activation(t, n[0], n[1]), t.dropout(0.3)));
  });
  family.check("RMSNorm of a residual", Bar::products, kMatrices, [](Trial& t, const Sizes& n) {
    const int64_t width = n[1] + 15;
    const Tensor x = t.input({n[0], width}), g = t.input({width}, 0.2, 1);
    t.expect("y", residual_norm(x, activation(t, n[0], width), t.dropout(0.3), g, {}));
  });
  family.check("gated", Bar::products, kMatrices, [](Trial& t, const Sizes& n) {
    const Tensor x = activation(t, n[0], n[1]), z = activation(t, n[0], n[1]);
    const Tensor y = gated(Function::gelu_tanh, x, z, t.dropout(0.3));
    t.expect("y", linear(y, t.input({3, n[1]})));
  });
  for (const Function f : {Function::gelu, Function::silu})
    family.check(f == Function::gelu ? "gelu" : "silu", Bar::products, kMatrices,
                 [f](Trial& t, const Sizes& n) {
                   const Tensor x = apply(f, activation(t, n[0], n[1]), t.dropout(0.3));
                   t.expect("y", linear(x, t.input({3, n[1]})));
                 });
  family.check("relu", Bar::products, kMatrices, [](Trial& t, const Sizes& n) {
    const Tensor x = apply(Function::relu, far_from_zero(t, n[0], n[1]), t.dropout(0.3));
    t.expect("y", linear(x, t.input({3, n[1]})));
  });
  // Forward only: if rounding moves x past 0, gradients of relu differ completely.
  family.check_forward("relu of a product", Bar::products, kMatrices, [](Trial& t, const Sizes& n) {
    const Tensor x = t.constant({n[0], kDepth});
    t.expect("y", linear_relu(x, t.constant({n[1], kDepth}, 0.25), t.constant({n[1]}, 0.2)));
  });
}

// Sentences, longest, heads, columns of a head.
const Shapes kBatches{.largest = {6, 40, 3, 40},
                      .large = {{24, 32, 8, 64},
                                {9, 90, 4, 128},
                                {12, 70, 4, 32},
                                {5, 40, 2, 200},
                                {2, 300, 2, 64},
                                {1, 150, 1, 200}}};

TEST(Parity, AttentionOfActivations) {
  Family family("attention of activations");
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    family.check(mask == AttentionMask::causal ? "to oneself, back" : "to oneself", Bar::products,
                 kBatches, [mask](Trial& t, const Sizes& n) {
                   const SentenceOffsets packing = t.packing(t.lengths(n[0], n[1]));
                   const Tensor qkv = activation(t, packing.tokens, 3 * n[2] * n[3]);
                   t.expect("y", self_attention(qkv, packing, {n[2], mask, t.dropout(0.2)}));
                 });
  for (const AttentionMask mask : {AttentionMask::none, AttentionMask::causal})
    family.check(
        mask == AttentionMask::causal ? "distances, back" : "distances", Bar::products, kBatches,
        [mask](Trial& t, const Sizes& n) {
          const SentenceOffsets packing = t.packing(t.lengths(n[0], n[1]));
          const Tensor qkv = activation(t, packing.tokens, 3 * n[2] * n[3]);
          const Tensor scores = t.input({2 * n[1] + 1, n[2]});
          t.expect("y", self_attention(qkv, packing, {n[2], mask, t.dropout(0.2), scores}));
        });
  family.check("to others", Bar::products, kBatches, [](Trial& t, const Sizes& n) {
    const SentenceOffsets to = t.packing(t.lengths(n[0], n[1])),
                          from = t.packing(t.lengths(n[0], n[1]));
    const Tensor q = activation(t, to.tokens, n[2] * n[3]);
    const Tensor kv = activation(t, from.tokens, 2 * n[2] * n[3]);
    t.expect("y", cross_attention(q, kv, to, from, {n[2], AttentionMask::none, t.dropout(0.2)}));
  });
}

}  // namespace
}  // namespace fovea::parity
