#include "models/transformer.h"

#include <numeric>
#include <optional>

#include "support/gradient_check.h"
#include "support/sentences.h"

namespace fovea {
namespace {

using namespace testing;

ModelConfig small() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 4, c.heads = 2, c.inner = 6;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  c.dropout = 0;
  return c;
}

// The whole model, every option that changes the mathematics.
TEST(Transformer, Gradient) {
  std::vector<ModelConfig> configs(8, small());
  configs[1].norm = NormPlace::pre;
  configs[2].activation = Function::gelu, configs[2].tied = Tied::output;
  configs[3].activation = Function::silu, configs[3].tied = Tied::none;
  configs[4].positions = Positions::learned, configs[4].max_length = 5;
  configs[5].positions = Positions::none, configs[5].output_bias = true;
  configs[6].final_norm = true, configs[6].scale_embeddings = false;
  configs[7].dropout = 0.2, configs[7].attention_dropout = 0.2, configs[7].activation_dropout = 0.2;
  const Sentences s = ragged();
  for (const ModelConfig& config : configs) {
    const auto model = make_model(config, 3, Type::f64);
    model->parameters().allocate_gradients();
    expect_gradient(parameters_of(model->parameters()), [&] {
      const DropoutScope dropout(5, 1);
      return model->loss(s.sources(), s.targets(), s.out, 0.1).loss;
    });
  }
}

// Links of ragged(): none, one or several keys, the end symbols' too.
const std::vector<int32_t> kLinkOffsets{0, 2, 2, 3, 4, 4, 6}, kLinkKeys{0, 2, 3, 0, 0, 1};
const Guidance kGuidance{kLinkOffsets, kLinkKeys, 0.3};

ModelConfig guided(NormPlace norm) {
  ModelConfig c = small();
  c.norm = norm, c.decoder_layers = 2;
  c.alignment_layer = 0, c.alignment_head = 1;
  return c;
}

// The whole model with what training adds up: the loss and the part that guides attention.
TEST(Transformer, GuidedGradient) {
  const Sentences s = ragged();
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    const auto model = make_model(guided(norm), 3, Type::f64);
    model->parameters().allocate_gradients();
    expect_gradient(parameters_of(model->parameters()), [&] {
      const BatchLoss found = model->guided_loss(s.sources(), s.targets(), s.out, 0.1, kGuidance);
      return found.loss + found.surrogate;
    });
  }
}

// The step that reads a word is guided as the one that writes it would be by links that were moved
// one row down; those of the sentence's last row lead nowhere.
TEST(Transformer, TheStepThatReadsIsGuided) {
  const Sentences s = ragged();
  const auto loss = [&](AlignmentStep step, const Guidance& guidance) {
    ModelConfig c = guided(NormPlace::post);
    c.alignment_step = step;
    const auto model = make_model(c, 3, Type::f64);
    return model->guided_loss(s.sources(), s.targets(), s.out, 0.1, guidance).guided.values().at(0);
  };
  const std::vector<int32_t> moved{0, 0, 2, 2, 2, 3, 3}, keys{0, 2, 0};  // rows 0-2, 3-4 and 5
  const double found = loss(AlignmentStep::reads, kGuidance);
  EXPECT_NEAR(found, loss(AlignmentStep::writes, {moved, keys, 0.3}), 1e-12);
  EXPECT_GT(std::abs(found - loss(AlignmentStep::writes, kGuidance)), 0.01);
}

// What fills a batch up changes nothing but the order of sums: Note [Filling].
TEST(Transformer, FillingDoesNotMatter) {
  const Sentences s = ragged();
  const auto model = make_model(guided(NormPlace::post), 3, Type::f64);
  model->parameters().allocate_gradients();
  const Tensor gradients = model->parameters().gradients();
  const Lesson lesson{s.sources(), s.targets(), s.out, kGuidance};
  std::vector<double> gradient, likelihood;
  for (const Fill fill : {Fill::nothing, Fill::blocks, Fill::few_sizes}) {
    gradients.fill(0);
    Tape tape;
    const BatchLoss found = model->loss_of(*model->prepare(lesson, fill), 0.1, kGuidance.weight);
    tape.backward(found.loss + found.surrogate);
    const auto words = found.log_likelihood.window(0, std::ssize(s.out)).values();
    const auto now = gradients.values();
    if (fill == Fill::nothing) gradient = now, likelihood = words;
    for (size_t i = 0; i < words.size(); ++i) EXPECT_NEAR(words[i], likelihood[i], 1e-12);
    for (size_t i = 0; i < now.size(); ++i) ASSERT_NEAR(now[i], gradient[i], 1e-12) << i;
  }
}

// The guided loss is that of the attention which the model shows, and reports stay as they were.
TEST(Transformer, GuidedLossIsOfTheHeadThatIsShown) {
  const Sentences s = ragged();
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    const auto model = make_model(guided(norm), 3);
    double expected = 0;
    const auto maps = model->attention(s.sources(), s.targets());
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
    const BatchLoss plain = model->loss(s.sources(), s.targets(), s.out, 0.1);
    EXPECT_FALSE(plain.guided);
    EXPECT_FALSE(plain.surrogate);
    for (const bool padded : {false, true}) {
      std::optional<Tape> tape;
      if (padded) tape.emplace();  // Note [Whole blocks]
      const BatchLoss found = model->guided_loss(s.sources(), s.targets(), s.out, 0.1, kGuidance);
      EXPECT_NEAR(found.guided.values()[0], expected, 1e-5);
      EXPECT_NEAR(found.surrogate.values()[0], 0.3 * expected, 1e-5);
      EXPECT_NEAR(found.loss.values()[0], plain.loss.values()[0], 1e-5);
      EXPECT_EQ(found.log_likelihood.elements(), std::ssize(s.out));
    }
  }
}

TEST(Transformer, FirstLossIsThatOfGuessing) {
  ModelConfig c = small();
  c.size = 32, c.heads = 4, c.inner = 64, c.target_words = c.source_words = 5000;
  c.tied = Tied::none;
  const auto model = make_model(c, 1);
  const Sentences s = ragged();
  const double loss = model->loss(s.sources(), s.targets(), s.out, 0).loss.values()[0] /
                      static_cast<double>(s.out.size());
  EXPECT_NEAR(loss, std::log(5000.0), 0.02 * std::log(5000.0));
}

// Step by step with remembered keys and values against the whole sentence at once.
TEST(Transformer, StepsEqualTheWhole) {
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    ModelConfig c = small();
    c.norm = norm, c.encoder_layers = c.decoder_layers = 2;
    const auto model = make_model(c, 1, Type::f64);
    Sentences s;
    s.add({3, 4, 5}, {6, 7, 8, 3});
    s.add({8, 8}, {3, 4, 5, 6});
    const auto whole = model->loss(s.sources(), s.targets(), s.out, 0).log_likelihood.values();
    auto state = model->start(s.sources());
    const std::vector<int32_t> swap{1, 0};
    for (size_t t = 0; t < 5; ++t) {  // rows change places after every step
      const bool swapped = t % 2;
      const size_t first = swapped ? 5 : 0, second = swapped ? 0 : 5;
      const Tensor z = model->step(*state, std::vector<int32_t>{s.in[first + t], s.in[second + t]});
      for (const size_t row : {size_t{0}, size_t{1}}) {
        const size_t at = (row ? second : first) + t;
        const auto logits = z.window(static_cast<int64_t>(row), 1).values();
        double sum = 0;
        for (const double v : logits) sum += std::exp(v);
        EXPECT_NEAR(logits[static_cast<size_t>(s.out[at])] - std::log(sum), whole[at], 1e-12);
      }
      model->reorder(*state, swap);
    }
  }
}

// What a model gives when its weights are kept for products alone is the same, bit for bit, also
// when other models have come and gone.
TEST(Transformer, SettlingChangesNothing) {
  ModelConfig config = small();
  config.size = 64, config.inner = 128;
  const Sentences s = ragged();
  const auto model = make_model(config, 3);
  auto look = [&] {
    auto state = model->start(s.sources());
    std::vector<double> seen =
        model->step(*state, std::vector<int32_t>(s.source_offsets.size() - 1, 1)).values();
    for (const auto& maps : model->attention(s.sources(), s.targets()))
      for (const AttentionMap& map : maps)
        seen.insert(seen.end(), map.weights.begin(), map.weights.end());
    return seen;
  };
  const auto before = look();
  model->settle();
  EXPECT_EQ(look(), before);
  EXPECT_EQ(look(), before);
  make_model(config, 4);
  EXPECT_EQ(look(), before);
}

// Products of settled weights are made in blocks of rows and a rest, for any number of rows.
TEST(Transformer, SettledWeightsTakeAnyNumberOfRows) {
  ModelConfig config = small();
  config.size = 64, config.inner = 128;
  const auto model = make_model(config, 3);
  std::vector<std::vector<double>> wanted;
  for (const bool settled : {false, true})
    for (int rows = 15; rows <= 34; ++rows) {
      Sentences s;
      for (int i = 0; i < rows; ++i) add_pair(s, i);
      const auto state = model->start(s.sources());
      const auto scores =
          model->step(*state, std::vector<int32_t>(static_cast<size_t>(rows), 1)).values();
      if (!settled) {
        wanted.push_back(scores);
        if (rows == 34) model->settle();
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
  c.size = 64, c.inner = 128;
  const auto model = make_model(c, 1);
  Sentences all;
  for (int i = 0; i < 30; ++i) add_pair(all, i);
  const auto together =
      model->loss(all.sources(), all.targets(), all.out, 0).log_likelihood.values();
  size_t at = 0;
  for (int i = 0; i < 30; ++i) {
    Sentences one;
    add_pair(one, i);
    for (const double v :
         model->loss(one.sources(), one.targets(), one.out, 0).log_likelihood.values())
      EXPECT_EQ(v, together[at++]);
  }
}

TEST(Transformer, AttentionMapsAreDistributions) {
  ModelConfig c = small();
  c.norm = NormPlace::pre;
  const auto model = make_model(c, 1);
  const Sentences s = ragged();
  const auto maps = model->attention(s.sources(), s.targets());
  ASSERT_EQ(maps.size(), 3u);
  for (const auto& sentence : maps) {
    EXPECT_EQ(sentence.size(), 6u);  // encoder, decoder, cross × 2 heads
    for (const AttentionMap& map : sentence)
      for (int64_t i = 0; i < map.rows; ++i) {
        const auto row = map.weights.begin() + i * map.cols;
        EXPECT_NEAR(std::accumulate(row, row + map.cols, 0.0), 1, 1e-6);
      }
  }
}

TEST(Transformer, ImpossibleShapesAreRefused) {
  ModelConfig c = small();
  c.heads = 3;
  EXPECT_THROW(c.check(Exit::data), Error);
  c = small();
  c.size = 5, c.heads = 1;
  EXPECT_THROW(c.check(Exit::data), Error);
  c = small();
  c.source_words = 8;
  EXPECT_THROW(c.check(Exit::data), Error);
  c = small();
  c.alignment_layer = 1, c.alignment_head = 0;  // of one layer
  EXPECT_THROW(c.check(Exit::data), Error);
  c.alignment_layer = 0, c.alignment_head = 2;
  EXPECT_THROW(c.check(Exit::data), Error);
  c.alignment_head = -1;
  EXPECT_THROW(c.check(Exit::data), Error);
  c.alignment_head = 1;
  EXPECT_NO_THROW(c.check(Exit::data));
}

}  // namespace
}  // namespace fovea
