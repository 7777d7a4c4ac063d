#include "models/text_classifier.h"

#include "support/gradient_check.h"

namespace fovea {
namespace {

using namespace testing;

constexpr int32_t kEnd = 2, kLabel = 4;

ModelConfig small(ReaderQuery query, const std::string& attention = "static") {
  ModelConfig c;
  c.type = "reader";
  c.encoder_layers = 1;
  c.size = 5, c.embedding = 3, c.encoder_size = 4;
  c.cell = Cell::lstm;
  c.attention.kind = attention;
  c.query = query;
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
    return model->loss(e.sources(), e.targets(), e.out, 0.1).loss;
  });
}

TEST(TextClassifier, GradientOfEveryQuery) {
  expect_model_gradient(small(ReaderQuery::summary), texts());
  expect_model_gradient(small(ReaderQuery::learned), texts());
  expect_model_gradient(small(ReaderQuery::question), documents());
  ModelConfig c = small(ReaderQuery::question);
  c.context = EncoderContext::sentence;
  expect_model_gradient(c, documents());
  expect_model_gradient(small(ReaderQuery::summary, "none"), texts());
  expect_model_gradient(small(ReaderQuery::question, "none"), documents());
}

TEST(TextClassifier, GradientWithOtherCellsLayersAndDropout) {
  ModelConfig c = small(ReaderQuery::summary);
  c.cell = Cell::gru, c.encoder_layers = 2, c.dropout = 0.2;
  expect_model_gradient(c, texts());
  c.cell = Cell::rnn, c.bidirectional = false, c.encoder_layers = 1;
  expect_model_gradient(c, texts());
  Examples one;
  one.add({4}, 5);
  expect_model_gradient(small(ReaderQuery::learned), one);
}

// The loss is that of the label, with or without </s> in the target.
TEST(TextClassifier, TheEndHasProbabilityOne) {
  const auto model = make_model(small(ReaderQuery::summary), 3, ElementType::f64);
  const Examples e = texts();
  Examples closed = e;
  closed.in.clear(), closed.out.clear(), closed.in_offsets = {0};
  for (const int32_t label : e.out) {
    closed.in.insert(closed.in.end(), {1, label});
    closed.out.insert(closed.out.end(), {label, kEnd});
    closed.in_offsets.push_back(static_cast<int32_t>(closed.in.size()));
  }
  const BatchLoss open = model->loss(e.sources(), e.targets(), e.out, 0);
  const BatchLoss whole = model->loss(e.sources(), closed.targets(), closed.out, 0);
  EXPECT_EQ(open.loss.values(), whole.loss.values());
  const std::vector<double> scores = open.log_likelihood.values(),
                            all = whole.log_likelihood.values();
  ASSERT_EQ(all.size(), 2 * scores.size());
  for (size_t b = 0; b < scores.size(); ++b) {
    EXPECT_EQ(all[2 * b], scores[b]);
    EXPECT_EQ(all[2 * b + 1], 0);
  }
}

TEST(TextClassifier, StepsGiveTheLabelAndThenTheEnd) {
  const auto model = make_model(small(ReaderQuery::question), 3, ElementType::f64);
  const Examples e = documents();
  const auto state = model->start(e.sources());
  const std::vector<double> first = model->step(*state, e.in).values();
  const std::vector<double> score =
      model->loss(e.sources(), e.targets(), e.out, 0).log_likelihood.values();
  for (size_t b = 0; b < e.out.size(); ++b) {
    double sum = 0;
    for (size_t k = 0; k < 7; ++k) sum += std::exp(first[7 * b + k]);
    EXPECT_NEAR(first[7 * b + static_cast<size_t>(e.out[b])] - std::log(sum), score[b], 1e-12);
    for (size_t k = 0; k < kLabel; ++k) EXPECT_LT(first[7 * b + k], -1e8) << "a special word";
  }
  const std::vector<int32_t> parents{2, 2, 0};
  model->reorder(*state, parents);
  const std::vector<double> again = model->step(*state, std::vector<int32_t>{1, 1, 1}).values();
  for (size_t k = 0; k < 7; ++k) EXPECT_EQ(again[k], first[14 + k]);
  for (size_t k = 0; k < 7; ++k) EXPECT_EQ(again[14 + k], first[k]);
  const std::vector<double> end = model->step(*state, std::vector<int32_t>{4, 5, 6}).values();
  for (size_t b = 0; b < 3; ++b)
    for (size_t k = 0; k < 7; ++k) EXPECT_EQ(end[7 * b + k] == 0, k == kEnd);
}

TEST(TextClassifier, AttendsToTheDocumentOnly) {
  const auto model = make_model(small(ReaderQuery::question), 3, ElementType::f64);
  const Examples e = documents();
  const auto maps = model->attention(e.sources(), e.targets());
  ASSERT_EQ(maps.size(), 4u);
  const size_t documents_end[] = {4, 1, 2, 7};
  for (size_t b = 0; b < 4; ++b) {
    ASSERT_EQ(maps[b].size(), 1u);
    const AttentionMap& map = maps[b].front();
    EXPECT_EQ(map.rows, 1);
    EXPECT_EQ(map.cols, e.offsets[b + 1] - e.offsets[b]);
    float sum = 0;
    for (size_t j = 0; j < map.weights.size(); ++j) {
      sum += map.weights[j];
      EXPECT_EQ(map.weights[j] > 0, j < documents_end[b]) << b << " " << j;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  const auto none = make_model(small(ReaderQuery::question, "none"), 3);
  EXPECT_TRUE(none->attention(e.sources(), e.targets()).front().empty());
}

TEST(TextClassifier, DoesNotDependOnItsBatch) {
  const auto model = make_model(small(ReaderQuery::question), 3, ElementType::f64);
  const Examples e = documents();
  const auto all = model->loss(e.sources(), e.targets(), e.out, 0).log_likelihood.values();
  Examples last;
  last.add({4, 6, kEnd, 8, 7, kEnd, kEnd, 5, 5}, 4);
  const auto alone = model->loss(last.sources(), last.targets(), last.out, 0);
  EXPECT_NEAR(alone.log_likelihood.values()[0], all[3], 1e-12);
}

// If sentences are encoded separately, swapping two of them changes only their positions.
TEST(TextClassifier, ReadsSentencesSeparately) {
  ModelConfig c = small(ReaderQuery::question);
  c.context = EncoderContext::sentence;
  const auto model = make_model(c, 3, ElementType::f64);
  const Tensor P = dynamic_cast<const TextClassifier&>(*model).P;
  Examples e;
  e.add({4, kEnd, 5, 6, kEnd, 7, kEnd, 8}, 5);
  e.add({5, 6, kEnd, 4, kEnd, 7, kEnd, 8}, 5);
  const auto scores = [&] {
    return model->loss(e.sources(), e.targets(), e.out, 0).log_likelihood.values();
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
  c.attention.score = "dot";
  EXPECT_EQ(code(c), ExitCode::data);
  c = small(ReaderQuery::summary);
  c.target_words = 4;
  EXPECT_EQ(code(c), ExitCode::data);
  c = small(ReaderQuery::summary);
  c.context = EncoderContext::sentence;
  EXPECT_EQ(code(c), ExitCode::data);
  const auto model = make_model(small(ReaderQuery::question), 3);
  EXPECT_THROW(model->start(texts().sources()), Error) << "no question";
}

}  // namespace
}  // namespace fovea
