#include "decode/classifier.h"

#include <gtest/gtest.h>

#include <numeric>

#include "temporary.h"

namespace fovea {
namespace {

ModelBundle bundle_of(ReaderQuery query, const std::string& attention = "static") {
  ModelBundle bundle;
  bundle.directory = "model";
  bundle.source = Vocabulary::from_entries(
      Segmentation::tokens, {{"where", 3}, {"is", 2}, {"mary", 2}, {"?", 1}, {".", 1}});
  bundle.target =
      Vocabulary::from_entries(Segmentation::words, {{"home", 2}, {"out", 1}, {"here", 1}});
  ModelConfig& c = bundle.config;
  ReaderConfig& own = c.network.emplace<ReaderConfig>();
  c.encoder_layers = 1, c.size = 6, c.max_length = 8;
  own.attention.kind = attention;
  own.query = query;
  c.source_words = bundle.source.size(), c.target_words = bundle.target.size();
  bundle.model = make_model(c, 5);
  return bundle;
}

TEST(Classifier, ProbabilitiesOfAllLabelsAndWeightsOfAllWords) {
  const ModelBundle bundle = bundle_of(ReaderQuery::summary);
  const Classifier classifier(bundle);
  EXPECT_EQ(classifier.asked(), LabelKind::label);
  const std::vector<ClassificationInput> texts{{"Where is Paul?", ""}, {" ", ""}, {"mary", ""}};
  const auto results = classifier.classify(texts);
  ASSERT_EQ(results.size(), 3u);
  const ClassificationResult& first = results[0];
  ASSERT_EQ(first.labels.size(), 3u);
  double sum = 0;
  for (const auto& [label, probability] : first.labels) sum += probability;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(first.label, first.labels[0].first);
  EXPECT_GE(first.labels[0].second, first.labels[1].second);
  EXPECT_EQ(first.words, (std::vector<std::string>{"Where", "is", "Paul", "?", "</s>"}))
      << "unknown words appear as written";
  ASSERT_EQ(first.weights.size(), 5u);
  EXPECT_NEAR(std::accumulate(first.weights.begin(), first.weights.end(), 0.0), 1, 1e-5);
  EXPECT_EQ(results[1].label, "");
  EXPECT_TRUE(results[1].labels.empty());
  EXPECT_EQ(results[2].words.size(), 2u);
  const auto alone = classifier.classify(std::span(texts).first(1));
  EXPECT_NEAR(alone[0].probability, first.probability, 1e-6);
}

TEST(Classifier, DocumentsAreCutAndQuestionsAreNot) {
  const ModelBundle bundle = bundle_of(ReaderQuery::question);
  const Classifier classifier(bundle);
  EXPECT_EQ(classifier.asked(), LabelKind::answer);
  const std::vector<ClassificationInput> texts{
      {"mary is . mary is . mary is .", "where ?"},
      {"Eve is .", "where ?"},
      {"", ""},
      {"mary", "where where where where where where where where"}};
  const auto results = classifier.classify(texts);
  EXPECT_TRUE(results[0].cut);
  EXPECT_EQ(results[0].words, (std::vector<std::string>{"mary", "is", ".", "</s>", "</s>"}));
  EXPECT_FALSE(results[1].cut);
  EXPECT_EQ(results[1].words, (std::vector<std::string>{"Eve", "is", ".", "</s>"}));
  EXPECT_EQ(results[2].label, "");
  EXPECT_TRUE(results[3].cut);
  EXPECT_FALSE(results[3].label.empty());
}

TEST(Classifier, WithoutAttentionThereAreNoWeights) {
  const ModelBundle bundle = bundle_of(ReaderQuery::summary, "none");
  const std::vector<ClassificationInput> texts{{"mary", ""}};
  const auto results = Classifier(bundle).classify(texts);
  EXPECT_TRUE(results[0].weights.empty());
  EXPECT_FALSE(results[0].label.empty());
}

TEST(Classifier, RefusesOtherModels) {
  ModelBundle bundle = bundle_of(ReaderQuery::summary);
  TransformerConfig& own = bundle.config.network.emplace<TransformerConfig>();
  bundle.config.target_words = bundle.config.source_words;  // tied embeddings
  own.heads = 2;
  bundle.model = make_model(bundle.config, 5);
  message_of(ExitCode::model, [&] { Classifier classifier(bundle); });
}

}  // namespace
}  // namespace fovea
