#include "models/recurrent_model.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "effort.h"
#include "support/gradient_check.h"
#include "support/network_settings.h"
#include "support/sentences.h"

namespace fovea {
namespace {

using namespace testing;

// States and annotations have the same size, so that every score is possible.
ModelConfig small(const std::string& kind = "global", const std::string& score = "auto") {
  ModelConfig c;
  RecurrentConfig& own = c.network.emplace<RecurrentConfig>();
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 4, own.encoder_size = 2, own.embedding = 3, own.readout = 5;
  c.tied = TiedEmbeddings::none;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  c.dropout = 0;
  own.attention.kind = kind, own.attention.score = score;
  own.attention.inner = 3, own.attention.window = 1, own.attention.gaussians = 2;
  return c;
}

// Every mechanism with both decoder forms.
std::vector<ModelConfig> mechanisms() {
  std::vector<ModelConfig> all;
  for (const AttentionMechanism& mechanism : attention_mechanisms())
    for (const DecoderForm decoder : {DecoderForm::bahdanau, DecoderForm::luong}) {
      all.push_back(small(mechanism.about.name));
      recurrent_of(all.back()).decoder = decoder;
      recurrent_of(all.back()).cell = decoder == DecoderForm::luong ? Cell::lstm : Cell::gru;
    }
  return all;
}

std::string name_of(const ModelConfig& c) {
  return recurrent_of(c).attention.kind +
         (recurrent_of(c).decoder == DecoderForm::luong ? ", luong" : ", bahdanau");
}

// A model in double precision with gradients. Its biases are not 0, because zero biases would hide
// errors.
struct TestModel {
  std::unique_ptr<Model> model;

  explicit TestModel(const ModelConfig& config) : model(make_model(config, 3, ElementType::f64)) {
    model->parameters().allocate_gradients();
    for (const Tensor& b : parameters_of(model->parameters()))
      if (b.rank() == 1 && b.elements() > 1) b.assign(random_tensor(b.shape(), 5).values());
  }
  const RecurrentModel& recurrent() const { return dynamic_cast<const RecurrentModel&>(*model); }

  // A live tape adds padding to batches (Note [Rows of eight]), and dropout depends on the row
  // numbers. The finite differences therefore need a tape too.
  GradientCheck check(const Sentences& s, bool training = false) const {
    return {parameters_of(model->parameters()), [this, &s, training] {
              std::optional<Tape> tape;
              if (!Tape::live()) tape.emplace();
              std::optional<DropoutScope> dropout;
              if (training) dropout.emplace(5, 1);
              return model->loss({s.sources(), s.targets(), s.out}, 0.1).loss;
            }};
  }
};

TEST(RecurrentModel, GradientOfEachDecoderAndCell) {
  const Sentences s = ragged();
  for (const DecoderForm decoder : {DecoderForm::bahdanau, DecoderForm::luong})
    for (const Cell cell : {Cell::rnn, Cell::lstm, Cell::gru, Cell::gru_after}) {
      ModelConfig c = small();
      auto& own = recurrent_of(c);
      own.decoder = decoder, own.cell = cell;
      TestModel(c).check(s).expect();
    }
}

TEST(RecurrentModel, GradientOfEachMechanism) {
  const Sentences s = ragged();
  for (const ModelConfig& c : mechanisms()) {
    if (recurrent_of(c).attention.kind == "global" ||
        recurrent_of(c).attention.kind == "hard-argmax")
      continue;
    SCOPED_TRACE(name_of(c));
    TestModel(c).check(s).expect();
  }
}

TEST(RecurrentModel, GradientOfEachScore) {
  const Sentences s = ragged();
  for (const AttentionInfo& score : attention_scores()) {
    SCOPED_TRACE(score.name);
    EXPECT_LE(TestModel(small("global", score.name)).check(s).error(), 1e-6);
  }
}

// s_0 = tanh(W_s c) of mechanisms whose row says so (Cho et al. 2014), and s_1 = f(s_0, [E y; c]).
TEST(RecurrentModel, StartsFromTheContext) {
  const Sentences s = ragged();
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    if (mechanism.first_state != AttentionMechanism::FirstState::context) continue;
    SCOPED_TRACE(mechanism.about.name);
    const TestModel ready(small(mechanism.about.name));
    const RecurrentModel& m = ready.recurrent();
    const auto source = m.encode(s.sources());
    const auto target = RecurrentModel::Target::of(s.targets());
    const Tensor c = m.attend->start(source.memory, target.sentence)["context"];
    const Tensor y = rows_at(m.E_target, target.words.window(0, c.rows()));
    const RecurrentCell& cell = m.decoder[0];
    const Tensor x = linear(y, cell.W, cell.b) + linear(c, m.C);
    const Tensor s_1 = cell.h(recurrent_step(cell.recurrent(), x, tanh(linear(c, m.W_s[0]))));
    const std::vector<double> found = m.decode(source, target).s[0].values(), want = s_1.values();
    ASSERT_EQ(found.size(), want.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(found[i], want[i], 1e-12);
  }
}

// The straight-through estimate is not the gradient of the computed function. Only parameters after
// the choice agree with finite differences.
TEST(RecurrentModel, GradientBehindHardChoices) {
  const Sentences s = ragged();
  ModelConfig c = small("hard-argmax");
  auto& own = recurrent_of(c);
  own.decoder = DecoderForm::luong, own.input_feeding = false;
  const TestModel ready(c);
  const RecurrentModel& m = ready.recurrent();
  const GradientCheck check({m.W_r, m.W_o, m.b_o}, [&] {
    return m.loss({s.sources(), s.targets(), s.out}, 0).loss;
  });
  EXPECT_LE(check.error(), 1e-6);
  EXPECT_LE(TestModel(small("hard-sample")).check(s, true).error(),
            1e-6);  // no gradient passes through the sample
}

// Further options that change the computation.
TEST(RecurrentModel, GradientOfOptions) {
  std::vector<ModelConfig> configs(8, small());
  configs[0].encoder_layers = configs[0].decoder_layers = 2, configs[0].dropout = 0.2;
  recurrent_of(configs[1]).decoder = DecoderForm::luong, recurrent_of(configs[1]).cell = Cell::lstm,
  configs[1].dropout = 0.2;
  configs[1].encoder_layers = 1, configs[1].decoder_layers = 2;
  recurrent_of(configs[2]).decoder = DecoderForm::luong,
  recurrent_of(configs[2]).input_feeding = false;
  configs[2].encoder_layers = configs[2].decoder_layers = 2, configs[2].dropout = 0.2;
  recurrent_of(configs[3]).bidirectional = false, recurrent_of(configs[3]).cell = Cell::lstm;
  recurrent_of(configs[4]).bidirectional = false,
  recurrent_of(configs[4]).attention.kind = "static";
  recurrent_of(configs[4]).decoder = DecoderForm::luong, configs[4].size = 3;
  configs[5].tied = TiedEmbeddings::output, recurrent_of(configs[5]).readout = 0;
  configs[6].tied = TiedEmbeddings::all, recurrent_of(configs[6]).readout = 0,
  recurrent_of(configs[6]).decoder = DecoderForm::luong;
  recurrent_of(configs[7]).attention.kind = "none", configs[7].tied = TiedEmbeddings::all,
  recurrent_of(configs[7]).embedding = 4;
  recurrent_of(configs[7]).encoder_size = 3, recurrent_of(configs[7]).cell = Cell::lstm,
  configs[7].decoder_layers = 2;
  const Sentences s = ragged();
  for (size_t i = 0; i < configs.size(); ++i) {
    SCOPED_TRACE(i);
    TestModel(configs[i]).check(s, true).expect();
  }
}

TEST(RecurrentModel, FirstLossEqualsRandomGuessing) {
  for (ModelConfig c : mechanisms()) {
    SCOPED_TRACE(name_of(c));
    auto& own = recurrent_of(c);
    c.size = 32, own.encoder_size = 16, own.embedding = 32, own.readout = 32;
    c.target_words = c.source_words = 5000;
    const auto model = make_model(c, 1);
    const Sentences s = ragged();
    const double loss = model->loss({s.sources(), s.targets(), s.out}, 0).loss.values()[0] /
                        static_cast<double>(s.out.size());
    EXPECT_NEAR(loss, std::log(5000.0), 0.02 * std::log(5000.0));
  }
}

double log_softmax_at(const Tensor& z, int64_t row, int32_t word) {
  const auto logits = z.window(row, 1).values();
  double sum = 0;
  for (const double v : logits) sum += std::exp(v);
  return logits[static_cast<size_t>(word)] - std::log(sum);
}

// Decoding one word at a time must equal the whole sentence at once, also if rows are reordered.
void expect_steps_equal_the_whole(const ModelConfig& c) {
  const auto model = make_model(c, 1, ElementType::f64);
  Sentences s;
  s.add({3, 4, 5}, {6, 7, 8, 3});
  s.add({8, 8}, {3, 4, 5, 6});
  const auto whole = model->loss({s.sources(), s.targets(), s.out}, 0).log_likelihood.values();
  const Decodable& decoder = *model->as<Decodable>();
  auto state = decoder.start(s.sources());
  std::vector<int32_t> of{0, 1};  // the sentence of each row
  const std::vector<std::vector<int32_t>> parents = {{1, 0}, {0, 1, 0}, {2, 1, 1, 0}, {3, 0}, {1}};
  for (size_t t = 0; t < 5; ++t) {
    std::vector<int32_t> words;
    for (const int32_t b : of) words.push_back(s.in[static_cast<size_t>(b) * 5 + t]);
    const Tensor z = decoder.step(*state, words);
    ASSERT_EQ(z.rows(), static_cast<int64_t>(of.size()));
    for (size_t row = 0; row < of.size(); ++row) {
      const size_t at = static_cast<size_t>(of[row]) * 5 + t;
      EXPECT_NEAR(log_softmax_at(z, static_cast<int64_t>(row), s.out[at]), whole[at], 1e-12);
    }
    decoder.reorder(*state, parents[t]);
    std::vector<int32_t> next;
    for (const int32_t parent : parents[t]) next.push_back(of[static_cast<size_t>(parent)]);
    of = next;
  }
}

TEST(RecurrentModel, StepsEqualTheWhole) {
  for (ModelConfig c : mechanisms()) {
    SCOPED_TRACE(name_of(c));
    expect_steps_equal_the_whole(c);
    auto& own = recurrent_of(c);
    c.encoder_layers = 1, c.decoder_layers = 3, own.input_feeding = false,
    own.bidirectional = false;
    expect_steps_equal_the_whole(c);
  }
}

// Scores of a sentence do not depend on the others in the batch, to the bit.
TEST(RecurrentModel, BatchDoesNotMatter) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "oneDNN's older kernels depend on it";
  for (ModelConfig c : mechanisms()) {
    SCOPED_TRACE(name_of(c));
    auto& own = recurrent_of(c);
    c.size = 64, own.encoder_size = 32, own.embedding = 48, own.readout = 40;
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
}

// Padding of all sentences to one length changes only the order of summation.
TEST(RecurrentModel, PaddingToFewSizesDoesNotMatter) {
  const Sentences s = ragged();
  const TrainingBatch batch{s.sources(), s.targets(), s.out};
  for (ModelConfig c : mechanisms()) {
    SCOPED_TRACE(name_of(c));
    c.encoder_layers = c.decoder_layers = 2;
    const TestModel ready(c);
    const RecurrentModel& model = ready.recurrent();
    const Tensor gradients = ready.model->parameters().gradients();
    std::vector<double> loss, gradient, likelihood;
    for (const BatchPadding fill : {BatchPadding::nothing, BatchPadding::few_sizes}) {
      gradients.fill(0);
      Tape tape;
      const BatchLoss found = model.loss_of(*model.prepare(batch, fill), 0.1, 0);
      tape.backward(found.loss);
      loss.push_back(found.loss.values()[0]);
      const auto words = found.log_likelihood.window(0, std::ssize(s.out)).values();
      if (fill == BatchPadding::nothing) gradient = gradients.values(), likelihood = words;
      for (size_t i = 0; i < words.size(); ++i) EXPECT_NEAR(words[i], likelihood[i], 1e-12);
    }
    EXPECT_NEAR(loss[0], loss[1], 1e-12);
    const auto filled = gradients.values();
    for (size_t i = 0; i < filled.size(); ++i) ASSERT_NEAR(filled[i], gradient[i], 1e-12) << i;
  }
}

// The padding of a training batch does not change the results: Note [Rows of eight].
TEST(RecurrentModel, PaddingDoesNotMatter) {
  const Sentences s = ragged();
  for (const ModelConfig& c : mechanisms()) {
    SCOPED_TRACE(name_of(c));
    const TestModel ready(c);
    const BatchLoss plain = ready.model->loss({s.sources(), s.targets(), s.out}, 0.1);
    Tape tape;
    const BatchLoss filled = ready.model->loss({s.sources(), s.targets(), s.out}, 0.1);
    EXPECT_NEAR(filled.loss.values()[0], plain.loss.values()[0], 1e-12);
    const auto found = filled.log_likelihood.values(), wanted = plain.log_likelihood.values();
    ASSERT_EQ(found.size(), s.out.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], 1e-12);
  }
}

TEST(RecurrentModel, AttentionMapsAreDistributions) {
  const Sentences s = ragged();
  for (const ModelConfig& c : mechanisms()) {
    SCOPED_TRACE(name_of(c));
    const auto model = make_model(c, 1);
    const auto maps = model->as<Attentive>()->attention(s.sources(), s.targets());
    ASSERT_EQ(maps.size(), 3u);
    for (size_t b = 0; b < maps.size(); ++b) {
      auto& own = recurrent_of(c);
      ASSERT_EQ(maps[b].size(), own.attention.attends() ? 1u : 0u);
      if (maps[b].empty()) continue;
      const AttentionMap& map = maps[b][0];
      EXPECT_EQ(map.kind, "cross");
      EXPECT_EQ(map.rows, s.offsets[b + 1] - s.offsets[b]);
      EXPECT_EQ(map.cols, s.source_offsets[b + 1] - s.source_offsets[b]);
      ASSERT_EQ(static_cast<int64_t>(map.weights.size()), map.rows * map.cols);
      for (int64_t i = 0; i < map.rows; ++i) {
        const auto row = map.weights.begin() + i * map.cols;
        const double sum = std::accumulate(row, row + map.cols, 0.0);
        EXPECT_LE(sum, 1 + 1e-6);
        if (own.attention.kind != "local-p") {
          EXPECT_NEAR(sum, 1, 1e-6);
        }
        EXPECT_GE(*std::min_element(row, row + map.cols), 0);
      }
    }
  }
}

void expect_rejected(const ModelConfig& c, const std::string& reason) {
  try {
    c.check(ExitCode::data);
    ADD_FAILURE() << "not rejected: " << reason;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find(reason), std::string::npos) << error.what();
  }
}

TEST(RecurrentModel, ImpossibleModelsAreRejected) {
  for (const ModelConfig& c : mechanisms()) EXPECT_NO_THROW(c.check(ExitCode::data));
  for (const char* score : {"dot", "scaled-dot"}) {
    ModelConfig c = small("global", score);
    c.size = 5;
    expect_rejected(c, "a state has 5 numbers and an annotation 4");
  }
  expect_rejected(small("window", "dot"), "attention window compares nothing");
  expect_rejected(small("none", "additive"), "attention none compares nothing");
  ModelConfig c = small();
  c.tied = TiedEmbeddings::output;
  expect_rejected(c, "reads 5 numbers and cannot share embeddings of 3");
  c = small("none");
  c.tied = TiedEmbeddings::output;
  expect_rejected(c, "reads 4 numbers (without attention, the state itself)");
  c = small("none");
  c.encoder_layers = 3, c.decoder_layers = 2;
  expect_rejected(c, "2 of 3 would leave the upper ones unread");
  for (const int64_t layers : {1, 2}) {
    c.encoder_layers = layers;
    EXPECT_NO_THROW(c.check(ExitCode::data));
  }
  c = small();
  c.encoder_layers = 3;
  EXPECT_NO_THROW(c.check(ExitCode::data)) << "attention reads the upper ones";
  auto& own = recurrent_of(c);
  c.tied = TiedEmbeddings::all, own.readout = 3, c.source_words = 8;
  expect_rejected(c, "8 source and 9 target words");
  c = small("local-m", "location");
  own.attention.location_length = 10;
  expect_rejected(c, "10 positions are fewer than model.max_length, 20");
}

// The sampled words of one training step, and their log probability.
struct Samples {
  std::vector<double> choices;
  double log_p = 0;

  Samples(const RecurrentModel& model, const Sentences& s, uint64_t seed) {
    const DropoutScope training(seed, 1);
    const auto decoded =
        model.decode(model.encode(s.sources()), RecurrentModel::Target::of(s.targets()));
    for (const AttentionResult& step : decoded.attended) {
      const auto alpha = step.weights.values();
      choices.push_back(static_cast<double>(std::ranges::max_element(alpha) - alpha.begin()));
      log_p += step.log_choice.values()[0];
    }
  }
};

// Over all choices c of a sentence, Σ_c p(c) (∇L_c + ∇surrogate_c) is the gradient of the expected
// loss Σ_c p(c) L_c, for any baseline.
TEST(RecurrentModel, SurrogateGivesTheGradientOfTheExpectedLoss) {
  ModelConfig config = small("hard-sample");
  recurrent_of(config).attention.lambda_e = 0;
  const TestModel ready(config);
  const RecurrentModel& model = ready.recurrent();
  Sentences s;
  s.add({5}, {4});  // two words to choose from, twice
  std::map<std::vector<double>, uint64_t> seeds;
  for (uint64_t seed = 0; seed < 200; ++seed) seeds.emplace(Samples(model, s, seed).choices, seed);
  ASSERT_EQ(seeds.size(), 4u);

  auto expected_loss = [&] {
    double sum = 0;
    for (const auto& [choices, seed] : seeds) {
      const double p = std::exp(Samples(model, s, seed).log_p);
      const DropoutScope training(seed, 1);
      sum += p * model.loss({s.sources(), s.targets(), s.out}, 0).loss.values()[0];
    }
    return sum;
  };
  const Tensor flat = model.parameters().values(), gradient = model.parameters().gradients();
  for (const double b : {0.0, -1.7}) {
    gradient.fill(0);
    double total = 0;
    for (const auto& [choices, seed] : seeds) {
      const double p = std::exp(Samples(model, s, seed).log_p);
      total += p;
      model.baseline.assign(std::vector<double>{b});
      const DropoutScope training(seed, 1);
      Tape tape;
      const BatchLoss found = model.loss({s.sources(), s.targets(), s.out}, 0);
      tape.backward(found.loss + found.surrogate, p);
      EXPECT_NE(model.baseline.values()[0], b);
    }
    EXPECT_NEAR(total, 1, 1e-12);
    const auto exact = gradient.values();
    std::vector<double> values = flat.values();
    for (size_t i = 0; i < values.size(); i += only_runs() ? 16 : 1) {
      constexpr double step = 1e-5;
      const double middle = values[i];
      double sides[2];
      for (const int side : {0, 1}) {
        values[i] = middle + (side ? step : -step);
        flat.assign(values);
        sides[side] = expected_loss();
      }
      values[i] = middle;
      flat.assign(values);
      EXPECT_NEAR((sides[1] - sides[0]) / (2 * step), exact[i], 1e-8) << "value " << i;
    }
  }
}

}  // namespace
}  // namespace fovea
