#include <gtest/gtest.h>

#include "effort.h"
#include "models/model_config.h"
#include "support/network_settings.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// Adds the gradient of the loss of two sentences.
void add_gradient(const Model& model) {
  const std::vector<int32_t> source{5, 6, 7, 2, 8, 4, 2}, offsets{0, 4, 7}, in{1, 4, 5, 6, 1, 7},
      out{4, 5, 6, 2, 7, 2}, in_offsets{0, 4, 6};
  Tape tape;
  const BatchLoss loss = model.loss({{source, offsets}, {in, in_offsets}, out}, 0.1);
  tape.backward(loss.surrogate ? loss.loss + loss.surrogate : loss.loss);
}

// If only one parameter is trained, its gradient must be the same as if all are trained: an
// operation may not rely on the gradients of its other inputs.
void expect_gradients_one_by_one(const ModelConfig& config) {
  const auto all = make_model(config, 3, ElementType::f64);
  all->parameters().allocate_gradients();
  add_gradient(*all);
  for (const auto& wanted : all->parameters().all()) {
    const auto one = make_model(config, 3, ElementType::f64);
    one->parameters().allocate_gradients([&](const auto& p) { return p.name == wanted.name; });
    add_gradient(*one);
    const std::vector<double> found = one->parameters().find(wanted.name)->tensor.grad().values(),
                              expected = wanted.tensor.grad().values();
    double off = 0, size = 1e-12;
    for (size_t i = 0; i < found.size(); ++i) {
      off = std::max(off, std::abs(found[i] - expected[i]));
      size = std::max(size, std::abs(expected[i]));
    }
    EXPECT_LE(off, 1e-9 * std::max(size, 1e-3)) << wanted.name;
    if (only_runs()) break;
  }
}

TEST(PartialGradient, OfATransformer) {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 2;
  c.size = 8, transformer_of(c).heads = 2, transformer_of(c).inner = 12;
  c.source_words = c.target_words = 9;
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    transformer_of(c).norm = norm;
    transformer_of(c).output_bias = true;
    for (const TiedEmbeddings tied : {TiedEmbeddings::none, TiedEmbeddings::all}) {
      c.tied = tied;
      expect_gradients_one_by_one(c);
    }
  }
}

TEST(PartialGradient, OfRecurrentModels) {
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    SCOPED_TRACE(mechanism.about.name);
    ModelConfig c;
    RecurrentConfig& own = c.network.emplace<RecurrentConfig>();
    c.encoder_layers = c.decoder_layers = 1;
    c.size = 6, c.tied = TiedEmbeddings::none, c.max_length = 12;
    c.source_words = c.target_words = 9;
    own.attention.kind = mechanism.about.name;
    expect_gradients_one_by_one(c);
  }
}

}  // namespace
}  // namespace fovea
