#include "decode/classifier.h"

#include <gtest/gtest.h>

#include <numeric>

#include "temporary.h"

namespace fovea {
namespace {

Package package_of(ReaderQuery query, const std::string& attention = "static") {
  Package package;
  package.directory = "model";
  package.source = Vocabulary::from_entries(
      Cut::tokens, {{"where", 3}, {"is", 2}, {"mary", 2}, {"?", 1}, {".", 1}});
  package.target = Vocabulary::from_entries(Cut::words, {{"home", 2}, {"out", 1}, {"here", 1}});
  ModelConfig& c = package.config;
  c.type = "reader";
  c.encoder_layers = 1, c.size = 6, c.max_length = 8;
  c.attention.kind = attention;
  c.query = query;
  c.source_words = package.source.size(), c.target_words = package.target.size();
  package.model = make_model(c, 5);
  return package;
}

TEST(Classifier, ProbabilitiesOfAllLabelsAndWeightsOfAllWords) {
  const Package package = package_of(ReaderQuery::summary);
  const Classifier classifier(package);
  EXPECT_EQ(classifier.asked(), Asked::label);
  const std::vector<Asking> texts{{"Where is Paul?", ""}, {" ", ""}, {"mary", ""}};
  const auto results = classifier.classify(texts);
  ASSERT_EQ(results.size(), 3u);
  const Classified& first = results[0];
  ASSERT_EQ(first.labels.size(), 3u);
  double sum = 0;
  for (const auto& [label, probability] : first.labels) sum += probability;
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(first.label, first.labels[0].first);
  EXPECT_GE(first.labels[0].second, first.labels[1].second);
  EXPECT_EQ(first.words, (std::vector<std::string>{"Where", "is", "Paul", "?", "</s>"}))
      << "words the model does not know are shown as they were written";
  ASSERT_EQ(first.weights.size(), 5u);
  EXPECT_NEAR(std::accumulate(first.weights.begin(), first.weights.end(), 0.0), 1, 1e-5);
  EXPECT_EQ(results[1].label, "");
  EXPECT_TRUE(results[1].labels.empty());
  EXPECT_EQ(results[2].words.size(), 2u);
  const auto alone = classifier.classify(std::span(texts).first(1));
  EXPECT_NEAR(alone[0].probability, first.probability, 1e-6);
}

TEST(Classifier, DocumentsAreCutAndQuestionsAreNot) {
  const Package package = package_of(ReaderQuery::question);
  const Classifier classifier(package);
  EXPECT_EQ(classifier.asked(), Asked::answer);
  const std::vector<Asking> texts{{"mary is . mary is . mary is .", "where ?"},
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
  const Package package = package_of(ReaderQuery::summary, "none");
  const std::vector<Asking> texts{{"mary", ""}};
  const auto results = Classifier(package).classify(texts);
  EXPECT_TRUE(results[0].weights.empty());
  EXPECT_FALSE(results[0].label.empty());
}

TEST(Classifier, RefusesOtherModels) {
  Package package = package_of(ReaderQuery::summary);
  package.config.type = "recurrent";
  message_of(Exit::model, [&] { Classifier classifier(package); });
}

}  // namespace
}  // namespace fovea
