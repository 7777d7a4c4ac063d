#include "models/text_classifier.h"

#include "support/gradient_check.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

using namespace testing;

constexpr int32_t kEnd = 2;

ModelConfig small(ReaderQuery query, const std::string& attention = "static") {
  ModelConfig c;
  ReaderConfig& own = c.network.emplace<ReaderConfig>();
  c.encoder_layers = 1;
  c.size = 5, own.embedding = 3, own.encoder_size = 4;
  own.cell = Cell::lstm;
  own.attention.kind = attention;
  own.query = query;
  c.source_words = 9, c.target_words = 7;
  c.max_length = 20;
  c.dropout = 0;
  return c;
}

// Sources in the input format: each ends with </s>. Documents have a further </s> before the
// question.
struct Examples {
  std::vector<int32_t> source, offsets{0}, in, in_offsets{0}, out;

  void add(std::vector<int32_t> words, int32_t label) {
    source.insert(source.end(), words.begin(), words.end());
    source.push_back(kEnd);
    offsets.push_back(static_cast<int32_t>(source.size()));
    in.push_back(1);
    in_offsets.push_back(static_cast<int32_t>(in.size()));
    out.push_back(label);
  }
  TokenBatch sources() const { return {source, offsets}; }
  TokenBatch targets() const { return {in, in_offsets}; }
};

Examples texts() {
  Examples e;
  e.add({4, 5, 6}, 5);
  e.add({7}, 4);
  e.add({8, 4, 4, 5, 3}, 6);
  e.add({}, 5);
  return e;
}

Examples documents() {
  Examples e;
  e.add({4, 5, 6, kEnd, 7}, 5);
  e.add({kEnd, 8, 3}, 4);
  e.add({8, kEnd}, 6);
  e.add({4, 6, kEnd, 8, 7, kEnd, kEnd, 5, 5}, 4);
  return e;
}

void expect_model_gradient(const ModelConfig& config, const Examples& e) {
  const auto model = make_model(config, 3, ElementType::f64);
  model->parameters().allocate_gradients();
  expect_gradient(parameters_of(model->parameters()), [&] {
    const DropoutScope dropout(5, 1);
    return model->loss({e.sources(), e.targets(), e.out}, 0.1).loss;
  });
}

TEST(TextClassifier, GradientOfEveryQuery) {
  expect_model_gradient(small(ReaderQuery::summary), texts());
  expect_model_gradient(small(ReaderQuery::learned), texts());
  expect_model_gradient(small(ReaderQuery::question), documents());
  ModelConfig c = small(ReaderQuery::question);
  reader_of(c).context = EncoderContext::sentence;
  expect_model_gradient(c, documents());
  expect_model_gradient(small(ReaderQuery::summary, "none"), texts());
  expect_model_gradient(small(ReaderQuery::question, "none"), documents());
}

TEST(TextClassifier, GradientWithOtherCellsLayersAndDropout) {
  ModelConfig c = small(ReaderQuery::summary);
  auto& own = reader_of(c);
  own.cell = Cell::gru, c.encoder_layers = 2, c.dropout = 0.2;
  expect_model_gradient(c, texts());
  own.cell = Cell::rnn, own.bidirectional = false, c.encoder_layers = 1;
  expect_model_gradient(c, texts());
  Examples one;
  one.add({4}, 5);
  expect_model_gradient(small(ReaderQuery::learned), one);
}

TEST(TextClassifier, LabelScoresAgreeWithTheLoss) {
  const auto model = make_model(small(ReaderQuery::question), 3, ElementType::f64);
  const Examples e = documents();
  const std::vector<double> logits =
      model->as<LabelPredictor>()->predict_labels(e.sources()).logits.values();
  const std::vector<double> score =
      model->loss({e.sources(), e.targets(), e.out}, 0).log_likelihood.values();
  ASSERT_EQ(logits.size(), 3 * e.out.size());
  for (size_t b = 0; b < e.out.size(); ++b) {
    double sum = 0;
    for (size_t k = 0; k < 3; ++k) sum += std::exp(logits[3 * b + k]);
    const auto label = static_cast<size_t>(e.out[b] - kFirstLabel);
    EXPECT_NEAR(logits[3 * b + label] - std::log(sum), score[b], 1e-12);
  }
}

TEST(TextClassifier, AWordThatIsNoLabelIsImpossible) {
  const auto model = make_model(small(ReaderQuery::summary), 3, ElementType::f64);
  Examples e = texts();
  e.out[1] = 3;  // <unk>
  const std::vector<double> score =
      model->loss({e.sources(), e.targets(), e.out}, 0).log_likelihood.values();
  for (size_t b = 0; b < e.out.size(); ++b) EXPECT_EQ(score[b] < -1e8, b == 1) << b;
}

TEST(TextClassifier, AttendsToTheDocumentOnly) {
  const auto model = make_model(small(ReaderQuery::question), 3, ElementType::f64);
  const Examples e = documents();
  const Tensor weights = model->as<LabelPredictor>()->predict_labels(e.sources()).weights;
  const std::vector<double> values = weights.values();
  const int64_t documents_end[] = {4, 1, 2, 7};
  ASSERT_EQ(weights.shape(), (Shape{4, 7}));
  for (int64_t b = 0; b < 4; ++b) {
    double sum = 0;
    for (int64_t j = 0; j < 7; ++j) {
      const double weight = values[static_cast<size_t>(7 * b + j)];
      sum += weight;
      EXPECT_EQ(weight > 0, j < documents_end[b]) << b << " " << j;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  const auto none = make_model(small(ReaderQuery::question, "none"), 3);
  EXPECT_FALSE(none->as<LabelPredictor>()->predict_labels(e.sources()).weights);
}

TEST(TextClassifier, DoesNotDependOnItsBatch) {
  const auto model = make_model(small(ReaderQuery::question), 3, ElementType::f64);
  const Examples e = documents();
  const auto all = model->loss({e.sources(), e.targets(), e.out}, 0).log_likelihood.values();
  Examples last;
  last.add({4, 6, kEnd, 8, 7, kEnd, kEnd, 5, 5}, 4);
  const auto alone = model->loss({last.sources(), last.targets(), last.out}, 0);
  EXPECT_NEAR(alone.log_likelihood.values()[0], all[3], 1e-12);
}

// If sentences are encoded separately, swapping two of them changes only their positions.
TEST(TextClassifier, ReadsSentencesSeparately) {
  ModelConfig c = small(ReaderQuery::question);
  reader_of(c).context = EncoderContext::sentence;
  const auto model = make_model(c, 3, ElementType::f64);
  const Tensor P = dynamic_cast<const TextClassifier&>(*model).P;
  Examples e;
  e.add({4, kEnd, 5, 6, kEnd, 7, kEnd, 8}, 5);
  e.add({5, 6, kEnd, 4, kEnd, 7, kEnd, 8}, 5);
  const auto scores = [&] {
    return model->loss({e.sources(), e.targets(), e.out}, 0).log_likelihood.values();
  };
  EXPECT_GT(std::abs(scores()[0] - scores()[1]), 1e-6) << "positions matter";
  P.fill(0);
  EXPECT_NEAR(scores()[0], scores()[1], 1e-12) << "the neighbouring sentences do not";
}

TEST(TextClassifier, RejectsImpossibleConfigurations) {
  const auto code = [](ModelConfig c) {
    try {
      c.check(ExitCode::data);
    } catch (const Error& error) {
      return error.code();
    }
    return ExitCode::unexpected;
  };
  EXPECT_EQ(code(small(ReaderQuery::summary)), ExitCode::unexpected) << "this one is valid";
  EXPECT_EQ(code(small(ReaderQuery::summary, "global")), ExitCode::data);
  ModelConfig c = small(ReaderQuery::summary);
  auto& own = reader_of(c);
  own.attention.score = "dot";
  EXPECT_EQ(code(c), ExitCode::data);
  c = small(ReaderQuery::summary);
  c.target_words = 4;
  EXPECT_EQ(code(c), ExitCode::data);
  c = small(ReaderQuery::summary);
  own.context = EncoderContext::sentence;
  EXPECT_EQ(code(c), ExitCode::data);
  const auto model = make_model(small(ReaderQuery::question), 3);
  EXPECT_THROW(model->as<LabelPredictor>()->predict_labels(texts().sources()), Error)
      << "no question";
}

}  // namespace
}  // namespace fovea
