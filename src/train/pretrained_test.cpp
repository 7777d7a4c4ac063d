#include "train/pretrained.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/files.h"
#include "temporary.h"

namespace fovea {
namespace {

struct PretrainedTest : testing::Test {
  Vocabulary vocabulary =
      Vocabulary::from_entries(Segmentation::words, {{"Haus", 3}, {"selten", 2}, {"Hund", 1}});
  ParameterStore store;

  PretrainedTest() {
    store.declare("b", {5}, ParameterInit::constant(1));
    store.declare("source/E", {vocabulary.size(), 2}, ParameterInit::normal(0.1));
    store.allocate(1);
  }
  const ParameterStore::Parameter& table() { return *store.find("source/E"); }
};

TEST_F(PretrainedTest, FillsTheRowsOfFoundWords) {
  WordVectors vectors(2);
  vectors.add("Hund", std::vector{3.0f, 4.0f});
  vectors.add("</s>", std::vector{5.0f, 6.0f});
  vectors.add("Haus", std::vector{1.0f, 2.0f});
  const std::vector<double> before = table().tensor.values();
  const FilledRows filled = fill_embeddings(vectors, vocabulary, table(), RowScale::as_given);
  EXPECT_EQ(filled.rows, (std::vector{4, 6}));
  EXPECT_EQ(filled.found(), 2);
  EXPECT_EQ(filled.missing, 1);
  EXPECT_EQ(filled.summary(), "found 2 of 3 pieces (66.7 %), missing 1: selten");
  std::vector<double> expected = before;
  expected[2 * kEos] = 5, expected[2 * kEos + 1] = 6;
  expected[8] = 1, expected[9] = 2, expected[12] = 3, expected[13] = 4;
  EXPECT_EQ(table().tensor.values(), expected);
}

TEST_F(PretrainedTest, ScalesRowsToTheTable) {
  WordVectors vectors(2);
  vectors.add("Hund", std::vector{300.0f, 400.0f});
  vectors.add("Haus", std::vector{0.0f, 500.0f});
  const auto mean_square = [](const std::vector<double>& values, size_t from) {
    double sum = 0;
    for (size_t i = from; i < values.size(); ++i) sum += values[i] * values[i];
    return sum / static_cast<double>(values.size() - from);
  };
  const double before = mean_square(table().tensor.values(), 0);
  fill_embeddings(vectors, vocabulary, table());
  const std::vector<double> after = table().tensor.values();
  const double filled =
      (after[8] * after[8] + after[9] * after[9] + after[12] * after[12] + after[13] * after[13]) /
      4;
  EXPECT_NEAR(filled, before, 1e-6 * before);
  EXPECT_NEAR(after[12] / after[13], 0.75, 1e-6);
}

TEST_F(PretrainedTest, RefusesVectorsOfAnotherSize) {
  const auto message =
      message_of(ExitCode::data, [&] { fill_embeddings(WordVectors(3), vocabulary, table()); });
  EXPECT_NE(message.find("source/E"), std::string::npos) << message;
}

TEST_F(PretrainedTest, ReadsOnlyWhatTheVocabularyHas) {
  const TemporaryFolder folder;
  write_atomically(folder / "v", "4 2\nHaus 1 2\nMaus 3 4\n\xFF 1 1\n</s> 5 6\n");
  const WordVectors vectors = read_vectors_for(folder / "v", vocabulary);
  EXPECT_EQ(vectors.words(), 2);
  EXPECT_EQ(vectors.counts().unwanted, 1);
  EXPECT_GE(vectors.find("Haus"), 0);
  EXPECT_GE(vectors.find("</s>"), 0);
}

// The tables of a model, and options for the vectors file `v`.
struct InitialVectors : PretrainedTest {
  TemporaryFolder folder;
  TrainOptions options;

  InitialVectors() {
    options.data.root = folder.path();
    options.vectors = {.source = "v", .target = {}, .frozen = true, .rescale = false};
    write_atomically(folder / "v", "2 2\nHund 3 4\nselten 1 2\n");
  }
  FirstVectors take() { return take_vectors(options, vocabulary, vocabulary, store); }
};

TEST_F(InitialVectors, GiveTheRangesToFreeze) {
  const FirstVectors first = take();
  ASSERT_EQ(first.frozen.size(), 1u);  // "selten" and "Hund" are adjacent rows
  EXPECT_EQ(first.frozen[0].begin, table().offset + 5 * 2);
  EXPECT_EQ(first.frozen[0].size, 4);
  ASSERT_EQ(first.identity.size(), 1u);
  write_atomically(folder / "v", "2 2\nHund 3 4\nselten 1 3\n");
  EXPECT_NE(take().identity, first.identity);
  options.vectors.frozen = false;
  EXPECT_TRUE(take().frozen.empty());
}

TEST_F(InitialVectors, FillASharedTableFromBothFiles) {
  write_atomically(folder / "w", "Hund 7 8\nHaus 5 6\n");
  options.vectors.target = "w";
  const FirstVectors first = take();
  const std::vector<double> values = table().tensor.values();
  EXPECT_EQ(std::vector<double>(values.begin() + 8, values.end()),
            (std::vector<double>{5, 6, 1, 2, 3, 4}));
  ASSERT_EQ(first.frozen.size(), 1u);
  EXPECT_EQ(first.frozen[0].size, 6);
}

TEST_F(InitialVectors, OfAnotherSizeAreRefusedWithARemedy) {
  write_atomically(folder / "v", "Hund 1 2 3\n");
  options.model.network = RecurrentConfig();
  const std::string message = message_of(ExitCode::data, [&] { take(); });
  EXPECT_NE(message.find("the vectors have size 3, the embeddings of the model have size 2; set "
                         "model.embedding to 3"),
            std::string::npos)
      << message;
  options.model.network = TransformerConfig();
  EXPECT_NE(message_of(ExitCode::data, [&] { take(); }).find("model.size to 3"), std::string::npos);
}

TEST_F(InitialVectors, WithoutAnyPieceAreRefused) {
  write_atomically(folder / "v", "hund 1 2\n");
  const std::string message = message_of(ExitCode::data, [&] { take(); });
  EXPECT_NE(message.find("found 0 of 3 pieces"), std::string::npos) << message;
}

}  // namespace
}  // namespace fovea
