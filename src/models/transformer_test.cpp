#include "models/transformer.h"

#include <numeric>
#include <optional>

#include "support/gradient_check.h"
#include "support/network_settings.h"
#include "support/sentences.h"

namespace fovea {
namespace {

using namespace testing;

ModelConfig small() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 1;
  auto& own = transformer_of(c);
  c.size = 4, own.heads = 2, own.inner = 6;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  c.dropout = 0;
  return c;
}

// Networks with the parts of other published models.
ModelConfig like_bart() {
  ModelConfig c = small();
  auto& own = transformer_of(c);
  own.embedding_norm = true, own.positions = Positions::learned, own.activation = Function::gelu;
  own.scale_embeddings = false, own.output_bias = true;
  return c;
}
ModelConfig like_m2m100() {
  ModelConfig c = small();
  auto& own = transformer_of(c);
  own.norm = NormPlace::pre, own.positions = Positions::half_m1, own.first_position = 2;
  return c;
}
ModelConfig like_t5() {
  ModelConfig c = small();
  auto& own = transformer_of(c);
  own.norm = NormPlace::pre, own.norm_type = NormType::rms, own.norm_epsilon = 1e-6;
  own.gated = true, own.activation = Function::gelu_tanh, own.head_size = 3;
  own.positions = Positions::relative, own.scale_embeddings = false;
  own.relative_buckets = 4, own.relative_distance = 4;
  return c;
}
ModelConfig like_marian() {  // the student models of Kim et al. 2019
  ModelConfig c = small();
  transformer_of(c).decoder_layer = DecoderLayerType::ssru, c.encoder_layers = 2;
  transformer_of(c).positions = Positions::half_m1, transformer_of(c).norm_epsilon = 1e-6;
  return c;
}

// The gradient of the whole model, for every option that changes the computation.
TEST(Transformer, Gradient) {
  std::vector<ModelConfig> configs(8, small());
  for (const auto& published : {like_bart, like_m2m100, like_t5, like_marian}) {
    configs.push_back(published());
    configs.push_back(published());
    configs.back().dropout = transformer_of(configs.back()).activation_dropout = 0.2;
  }
  transformer_of(configs[1]).norm = NormPlace::pre;
  transformer_of(configs[2]).activation = Function::gelu, configs[2].tied = TiedEmbeddings::output;
  transformer_of(configs[3]).activation = Function::silu, configs[3].tied = TiedEmbeddings::none;
  transformer_of(configs[4]).positions = Positions::learned, configs[4].max_length = 5;
  transformer_of(configs[5]).positions = Positions::none,
  transformer_of(configs[5]).output_bias = true;
  transformer_of(configs[6]).final_norm = true, transformer_of(configs[6]).scale_embeddings = false;
  configs[7].dropout = 0.2, transformer_of(configs[7]).attention_dropout = 0.2,
  transformer_of(configs[7]).activation_dropout = 0.2;
  const Sentences s = ragged();
  for (const ModelConfig& config : configs) {
    const auto model = make_model(config, 3, ElementType::f64);
    model->parameters().allocate_gradients();
    expect_gradient(parameters_of(model->parameters()), [&] {
      const DropoutScope dropout(5, 1);
      return model->loss({s.sources(), s.targets(), s.out}, 0.1).loss;
    });
  }
}

// The alignment links of ragged(): none, one or several keys per word, also for end symbols.
const std::vector<int32_t> kLinkOffsets{0, 2, 2, 3, 4, 4, 6}, kLinkKeys{0, 2, 3, 0, 0, 1};
const AlignmentGuidance kGuidance{kLinkOffsets, kLinkKeys, 0.3};

ModelConfig guided(NormPlace norm, ModelConfig c = small()) {
  auto& own = transformer_of(c);
  own.norm = norm, c.decoder_layers = 2;
  own.alignment_layer = 0, own.alignment_head = 1;
  return c;
}

// The gradient of the training objective: the loss plus the alignment loss.
TEST(Transformer, GuidedGradient) {
  const Sentences s = ragged();
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    const auto model =
        make_model(guided(norm, norm == NormPlace::pre ? like_t5() : small()), 3, ElementType::f64);
    model->parameters().allocate_gradients();
    expect_gradient(parameters_of(model->parameters()), [&] {
      const BatchLoss found = model->loss({s.sources(), s.targets(), s.out, kGuidance}, 0.1);
      return found.loss + found.surrogate;
    });
  }
}

// Guiding the step that reads a word equals guiding the step that writes it, with links moved down
// by one row. The links of a sentence's last row are lost.
TEST(Transformer, GuidesTheStepThatReads) {
  const Sentences s = ragged();
  const auto loss = [&](AlignmentStep step, const AlignmentGuidance& guidance) {
    ModelConfig c = guided(NormPlace::post);
    transformer_of(c).alignment_step = step;
    const auto model = make_model(c, 3, ElementType::f64);
    return model->loss({s.sources(), s.targets(), s.out, guidance}, 0.1).guided.values().at(0);
  };
  const std::vector<int32_t> moved{0, 0, 2, 2, 2, 3, 3}, keys{0, 2, 0};  // rows 0-2, 3-4 and 5
  const double found = loss(AlignmentStep::reads, kGuidance);
  EXPECT_NEAR(found, loss(AlignmentStep::writes, {moved, keys, 0.3}), 1e-12);
  EXPECT_GT(std::abs(found - loss(AlignmentStep::writes, kGuidance)), 0.01);
}

// Padding changes only the order of summation: Note [Filling].
void expect_padding_does_not_matter(const ModelConfig& config) {
  const Sentences s = ragged();
  const auto model = make_model(config, 3, ElementType::f64);
  model->parameters().allocate_gradients();
  const Tensor gradients = model->parameters().gradients();
  const TrainingBatch batch{s.sources(), s.targets(), s.out, kGuidance};
  const Replayable& replayable = *model->as<Replayable>();
  std::vector<double> gradient, likelihood;
  for (const BatchPadding fill :
       {BatchPadding::nothing, BatchPadding::blocks, BatchPadding::few_sizes}) {
    gradients.fill(0);
    Tape tape;
    const BatchLoss found =
        replayable.loss_of(*replayable.prepare(batch, fill), 0.1, kGuidance.weight);
    tape.backward(found.loss + found.surrogate);
    const auto words = found.log_likelihood.window(0, std::ssize(s.out)).values();
    const auto now = gradients.values();
    if (fill == BatchPadding::nothing) gradient = now, likelihood = words;
    for (size_t i = 0; i < words.size(); ++i) EXPECT_NEAR(words[i], likelihood[i], 1e-12);
    for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], gradient[i], 1e-12) << i;
  }
}

TEST(Transformer, PaddingDoesNotMatter) {
  expect_padding_does_not_matter(guided(NormPlace::post));
  expect_padding_does_not_matter(guided(NormPlace::pre, like_t5()));
  expect_padding_does_not_matter(guided(NormPlace::post, like_marian()));
}

// The alignment loss agrees with the attention maps of the guided head. The reported loss does not
// change.
TEST(Transformer, GuidedLossAgreesWithTheMaps) {
  const Sentences s = ragged();
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    const auto model = make_model(guided(norm, norm == NormPlace::pre ? like_t5() : small()), 3);
    double expected = 0;
    const auto maps = model->as<Attentive>()->attention(s.sources(), s.targets());
    size_t n = 0;
    for (const auto& sentence : maps)
      for (const AttentionMap& map : sentence) {
        if (map.kind != "cross" || map.layer != 0 || map.head != 1) continue;
        for (int64_t row = 0; row < map.rows; ++row, ++n) {
          const int32_t first = kLinkOffsets[n], end = kLinkOffsets[n + 1];
          for (int32_t l = first; l < end; ++l) {
            const double a = map.weights[row * map.cols + kLinkKeys[l]];
            expected -= std::log(a) / (end - first);
          }
        }
      }
    ASSERT_EQ(n + 1, kLinkOffsets.size());
    const BatchLoss plain = model->loss({s.sources(), s.targets(), s.out}, 0.1);
    EXPECT_FALSE(plain.guided);
    EXPECT_FALSE(plain.surrogate);
    for (const bool padded : {false, true}) {
      std::optional<Tape> tape;
      if (padded) tape.emplace();  // Note [Filling]
      const BatchLoss found = model->loss({s.sources(), s.targets(), s.out, kGuidance}, 0.1);
      EXPECT_NEAR(found.guided.values()[0], expected, 1e-5);
      EXPECT_NEAR(found.surrogate.values()[0], 0.3 * expected, 1e-5);
      EXPECT_NEAR(found.loss.values()[0], plain.loss.values()[0], 1e-5);
      EXPECT_EQ(found.log_likelihood.elements(), std::ssize(s.out));
    }
  }
}

// Positions that begin at n are the positions of a sentence whose first n words are absent.
TEST(Transformer, FirstPositionMovesTheTable) {
  ModelConfig c = like_m2m100();
  const Transformer from_2(c, transformer_of(c), ElementType::f64);
  transformer_of(c).first_position = 0;
  const Transformer from_0(c, transformer_of(c), ElementType::f64);
  const auto wanted = from_0.embed_source.positions(9).window(2, 7).values();
  const auto found = from_2.embed_source.positions(7).window(0, 7).values();
  EXPECT_EQ(found, wanted);
}

// y = (f(x W_1 + b_1) ⊙ (x W_3 + b_3)) W_2 + b_2, for a width of 1.
TEST(Transformer, GatedFeedForward) {
  ModelConfig c = small();
  c.size = 1, transformer_of(c).inner = 1, transformer_of(c).gated = true;
  transformer_of(c).activation = Function::silu;
  ParameterStore store(ElementType::f64);
  const FeedForward layer(ParameterScope{store, ""}, c, transformer_of(c));
  store.allocate(1);
  for (const auto& [name, value] : {std::pair("W_1/W", 2.0),
                                    {"W_1/b", -1.0},
                                    {"W_2/W", 3.0},
                                    {"W_2/b", 0.5},
                                    {"W_3/W", -4.0},
                                    {"W_3/b", 0.25}})
    store.find(name)->tensor.fill(value);
  const double x = 0.7, inner = 2 * x - 1;
  const double wanted = inner / (1 + std::exp(-inner)) * (-4 * x + 0.25) * 3 + 0.5;
  const Tensor y = layer(Tensor::of({1, 1}, std::vector<double>{x}, ElementType::f64));
  EXPECT_NEAR(y.values()[0], wanted, 1e-14);
}

// Heads that are narrower or wider than size / heads have projections of heads · d_k columns.
TEST(Transformer, HeadSizeSetsTheShapes) {
  ModelConfig c = small();
  transformer_of(c).head_size = 3;
  const auto model = make_model(c, 1);
  const auto shape = [&](const char* name) {
    return model->parameters().find(name)->tensor.shape();
  };
  EXPECT_EQ(shape("encoder/layers/0/attend/W_Q"), (Shape{6, 4}));
  EXPECT_EQ(shape("encoder/layers/0/attend/b_V"), (Shape{6}));
  EXPECT_EQ(shape("decoder/layers/0/attend_source/W_O/W"), (Shape{4, 6}));
  transformer_of(c).head_size = 2;  // size / heads
  const Sentences s = ragged();
  const auto loss = [&](const ModelConfig& config) {
    return make_model(config, 1)->loss({s.sources(), s.targets(), s.out}, 0).loss.values()[0];
  };
  EXPECT_EQ(loss(c), loss(small()));
}

TEST(Transformer, FirstLossEqualsRandomGuessing) {
  ModelConfig c = small();
  auto& own = transformer_of(c);
  c.size = 32, own.heads = 4, own.inner = 64, c.target_words = c.source_words = 5000;
  c.tied = TiedEmbeddings::none;
  const auto model = make_model(c, 1);
  const Sentences s = ragged();
  const double loss = model->loss({s.sources(), s.targets(), s.out}, 0).loss.values()[0] /
                      static_cast<double>(s.out.size());
  EXPECT_NEAR(loss, std::log(5000.0), 0.02 * std::log(5000.0));
}

// Decoding step by step with cached keys and values must equal the whole sentence at once.
TEST(Transformer, StepsEqualTheWhole) {
  ModelConfig pre = small();
  transformer_of(pre).norm = NormPlace::pre;
  for (ModelConfig c : {small(), pre, like_bart(), like_m2m100(), like_t5(), like_marian()}) {
    c.encoder_layers = c.decoder_layers = 2;
    const auto model = make_model(c, 1, ElementType::f64);
    Sentences s;
    s.add({3, 4, 5}, {6, 7, 8, 3});
    s.add({8, 8}, {3, 4, 5, 6});
    const auto whole = model->loss({s.sources(), s.targets(), s.out}, 0).log_likelihood.values();
    const Decodable& decoder = *model->as<Decodable>();
    auto state = decoder.start(s.sources());
    const std::vector<int32_t> swap{1, 0};
    for (size_t t = 0; t < 5; ++t) {  // rows are swapped after every step
      const bool swapped = t % 2;
      const size_t first = swapped ? 5 : 0, second = swapped ? 0 : 5;
      const std::vector<int32_t> words{s.in[first + t], s.in[second + t]};
      const Tensor z = decoder.step(*state, words);
      for (const size_t row : {size_t{0}, size_t{1}}) {
        const size_t at = (row ? second : first) + t;
        const auto logits = z.window(static_cast<int64_t>(row), 1).values();
        double sum = 0;
        for (const double v : logits) sum += std::exp(v);
        EXPECT_NEAR(logits[static_cast<size_t>(s.out[at])] - std::log(sum), whole[at], 1e-12);
      }
      decoder.reorder(*state, swap);
    }
  }
}

// freeze_for_inference() does not change a bit of the results, also after another model was created
// and destroyed.
void expect_same_when_frozen(ModelConfig config) {
  config.size = 64, transformer_of(config).inner = 128;
  const Sentences s = ragged();
  const auto model = make_model(config, 3);
  auto results = [&] {
    const Decodable& decoder = *model->as<Decodable>();
    auto state = decoder.start(s.sources());
    std::vector<double> all =
        decoder.step(*state, std::vector<int32_t>(s.source_offsets.size() - 1, 1)).values();
    for (const auto& maps : model->as<Attentive>()->attention(s.sources(), s.targets()))
      for (const AttentionMap& map : maps)
        all.insert(all.end(), map.weights.begin(), map.weights.end());
    return all;
  };
  const auto before = results();
  model->freeze_for_inference();
  EXPECT_EQ(results(), before);
  EXPECT_EQ(results(), before);
  make_model(config, 4);
  EXPECT_EQ(results(), before);
}
TEST(Transformer, FreezingDoesNotChangeResults) {
  expect_same_when_frozen(small());
  expect_same_when_frozen(like_bart());
  expect_same_when_frozen(like_t5());
  expect_same_when_frozen(like_marian());
}

// Products with frozen weights run in blocks of rows plus a remainder. Any number of rows must
// work.
TEST(Transformer, FrozenWeightsTakeAnyNumberOfRows) {
  ModelConfig config = small();
  config.size = 64, transformer_of(config).inner = 128;
  const auto model = make_model(config, 3);
  std::vector<std::vector<double>> wanted;
  for (const bool frozen : {false, true})
    for (int rows = 15; rows <= 34; ++rows) {
      Sentences s;
      for (int i = 0; i < rows; ++i) add_pair(s, i);
      const Decodable& decoder = *model->as<Decodable>();
      const auto state = decoder.start(s.sources());
      const auto scores =
          decoder.step(*state, std::vector<int32_t>(static_cast<size_t>(rows), 1)).values();
      if (!frozen) {
        wanted.push_back(scores);
        if (rows == 34) model->freeze_for_inference();
        continue;
      }
      const auto& same = wanted[static_cast<size_t>(rows - 15)];
      for (size_t i = 0; i < scores.size(); ++i) ASSERT_NEAR(scores[i], same[i], 1e-5) << rows;
    }
}

// Scores of a sentence do not depend on the others in the batch, to the bit.
TEST(Transformer, BatchDoesNotMatter) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "oneDNN's older kernels depend on it";
  ModelConfig c = small();
  c.size = 64, transformer_of(c).inner = 128;
  const auto model = make_model(c, 1);
  Sentences all;
  for (int i = 0; i < 30; ++i) add_pair(all, i);
  const auto together =
      model->loss({all.sources(), all.targets(), all.out}, 0).log_likelihood.values();
  size_t at = 0;
  for (int i = 0; i < 30; ++i) {
    Sentences one;
    add_pair(one, i);
    for (const double v :
         model->loss({one.sources(), one.targets(), one.out}, 0).log_likelihood.values())
      EXPECT_EQ(v, together[at++]);
  }
}

void expect_distributions(const ModelConfig& c, size_t maps_of_sentence) {
  const auto model = make_model(c, 1);
  const Sentences s = ragged();
  const auto maps = model->as<Attentive>()->attention(s.sources(), s.targets());
  ASSERT_EQ(maps.size(), 3u);
  for (const auto& sentence : maps) {
    EXPECT_EQ(sentence.size(), maps_of_sentence);
    for (const AttentionMap& map : sentence)
      for (int64_t i = 0; i < map.rows; ++i) {
        const auto row = map.weights.begin() + i * map.cols;
        EXPECT_NEAR(std::accumulate(row, row + map.cols, 0.0), 1, 1e-6);
      }
  }
}

TEST(Transformer, AttentionMapsAreDistributions) {
  ModelConfig c = small();
  transformer_of(c).norm = NormPlace::pre;
  expect_distributions(c, 6);  // encoder, decoder, cross × 2 heads
  expect_distributions(like_t5(), 6);
  expect_distributions(like_marian(), 6);  // two encoder layers, and no decoder
}

// With zero scores of distances, a network is a network without positions.
TEST(Transformer, RelativePositionsAddScores) {
  const Sentences s = ragged();
  const auto loss = [&](Positions positions, double score) {
    ModelConfig c = like_t5();
    transformer_of(c).positions = positions;
    const auto model = make_model(c, 1, ElementType::f64);
    for (const char* stack : {"encoder/bias", "decoder/bias"})
      if (const auto* bias = model->parameters().find(stack)) {
        EXPECT_EQ(bias->tensor.shape(), (Shape{4, 2}));
        bias->tensor.fill(score);
        bias->tensor.window(0, 1).fill(0);  // the bucket of distance 0
      }
    return model->loss({s.sources(), s.targets(), s.out}, 0).loss.values()[0];
  };
  EXPECT_NEAR(loss(Positions::relative, 0), loss(Positions::none, 0), 1e-12);
  EXPECT_GT(std::abs(loss(Positions::relative, -5) - loss(Positions::none, 0)), 1e-4);
}

TEST(Transformer, ImpossibleShapesAreRejected) {
  ModelConfig c = small();
  auto& own = transformer_of(c);
  own.heads = 3;
  EXPECT_THROW(c.check(ExitCode::data), Error);
  c = small();
  c.size = 5, own.heads = 1;
  EXPECT_THROW(c.check(ExitCode::data), Error);
  c = small();
  c.source_words = 8;
  EXPECT_THROW(c.check(ExitCode::data), Error);
  c = small();
  own.alignment_layer = 1, own.alignment_head = 0;  // there is only layer 0
  EXPECT_THROW(c.check(ExitCode::data), Error);
  own.alignment_layer = 0, own.alignment_head = 2;
  EXPECT_THROW(c.check(ExitCode::data), Error);
  own.alignment_head = -1;
  EXPECT_THROW(c.check(ExitCode::data), Error);
  own.alignment_head = 1;
  EXPECT_NO_THROW(c.check(ExitCode::data));
  own.heads = 3, own.head_size = 5;  // heads of any width
  EXPECT_NO_THROW(c.check(ExitCode::data));
  ModelConfig relative = like_t5();
  EXPECT_NO_THROW(relative.check(ExitCode::data));
  transformer_of(relative).relative_buckets = 6;
  EXPECT_THROW(relative.check(ExitCode::data), Error);
  transformer_of(relative).relative_buckets = 32;  // of 4 distances
  EXPECT_THROW(relative.check(ExitCode::data), Error);
  own.first_position = 2, own.positions = Positions::learned;
  EXPECT_THROW(c.check(ExitCode::data), Error);
}

}  // namespace
}  // namespace fovea
