#include "decode/attention_alignment.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "support/table_model.h"

namespace fovea {
namespace {

TEST(Alignment, SumsSourcePiecesAndAveragesTargetPieces) {
  // Two pieces of one target word and </s>; source pieces of words 0, 1, 1 and </s>.
  const SoftAlignment pieces{3, 4, {.1f, .2f, .3f, .4f, .5f, .2f, .1f, .2f, 0, 0, 0, 1}};
  const std::vector<int> target{0, 0, 1}, source{0, 1, 1, 2};
  const SoftAlignment words = by_word(pieces, target, source);
  ASSERT_EQ(words.rows, 2);
  ASSERT_EQ(words.cols, 3);
  const std::vector<float> expected{.3f, .4f, .3f, 0, 0, 1};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(words.weights[i], expected[i], 1e-6);
  EXPECT_EQ(pharaoh(hard_alignment(words)), "1-0");
}

TEST(Alignment, MeanIsOfOneKind) {
  const std::vector<AttentionMap> maps{{"encoder", 0, 0, 1, 1, {9}},
                                       {"cross", 0, 0, 1, 2, {1, 0}},
                                       {"cross", 0, 1, 1, 2, {0.5, 0.5}}};
  EXPECT_EQ(mean_attention(maps, "cross").weights, (std::vector<float>{0.75f, 0.25f}));
  EXPECT_THROW(mean_attention(maps, "decoder"), Error);
}

TEST(Alignment, EndSymbolsAreExcluded) {
  const SoftAlignment words{3, 3, {.1f, .2f, .7f, .4f, .3f, .3f, 0, 0, 1}};
  EXPECT_EQ(pharaoh(hard_alignment(words)), "1-0 0-1");
  EXPECT_EQ(pharaoh(hard_alignment({1, 1, {1}})), "");
}

TEST(Alignment, AWordWithoutWeightHasNoLink) {
  const SoftAlignment words{4, 3, {0, 0, 1, .2f, .2f, .6f, .6f, .3f, .1f, 0, 0, 1}};
  EXPECT_EQ(pharaoh(hard_alignment(words)), "0-1 0-2");
  EXPECT_EQ(pharaoh(links_above(words, 0.2f)), "0-2 1-2");
  EXPECT_EQ(pharaoh(links_above(words, 0.1f)), "0-1 1-1 0-2 1-2");
  EXPECT_EQ(nearest_targets(words), (std::vector{2, 2}));
  EXPECT_EQ(nearest_targets({2, 3, {0, .4f, .6f, .5f, 0, .5f}}), (std::vector{-1, 0}));
}

// Two layers of two heads: 2 pieces and </s> attend to 2 pieces and </s>.
std::vector<AttentionMap> four_heads() {
  return {{"decoder", 0, 0, 1, 1, {1}},
          {"cross", 0, 0, 3, 3, {1, 0, 0, 0, 1, 0, 0, 0, 1}},
          {"cross", 0, 1, 3, 3, {0, 1, 0, 1, 0, 0, 0, 0, 1}},
          {"cross", 1, 0, 3, 3, {0, 0, 1, 1, 0, 0, 0, 1, 0}},
          {"cross", 1, 1, 3, 3, {0, 0, 1, 0, 1, 0, 1, 0, 0}}};
}

TEST(Alignment, OneHeadOrAMean) {
  const std::vector<AttentionMap> maps = four_heads();
  using V = std::vector<float>;
  EXPECT_EQ(chosen_attention(maps, {0, 1}).weights, (V{0, 1, 0, 1, 0, 0, 0, 0, 1}));
  EXPECT_EQ(chosen_attention(maps, {0, -1}).weights, (V{.5, .5, 0, .5, .5, 0, 0, 0, 1}));
  EXPECT_EQ(chosen_attention(maps, {-1, 0}).weights, (V{.5, 0, .5, .5, .5, 0, 0, .5, .5}));
  EXPECT_EQ(chosen_attention(maps, {}).weights, mean_attention(maps, "cross").weights);
  EXPECT_THROW(chosen_attention(maps, {2, 0}), Error);
  EXPECT_THROW(chosen_attention(maps, {0, 2}), Error);
  EXPECT_THROW(chosen_attention(std::span(maps).first(1), {}), Error);
}

TEST(Alignment, TheNextStepReadsTheWord) {
  const auto choice = AttentionChoice{1, 0, AlignmentStep::reads};
  const PairPieces pair{{{7, 8}, {0, 1, 2}}, {{7, 8}, {0, 1, 2}}};
  EXPECT_EQ(pharaoh(hard_alignment(word_attention(four_heads(), choice, pair))), "0-0 1-1");
  EXPECT_EQ(pharaoh(hard_alignment(word_attention(four_heads(), {1, 0}, pair))), "0-1");
}

TEST(Alignment, ChoicesAreAllHeadsAndMeansAtBothSteps) {
  const auto choices = attention_choices(four_heads());
  EXPECT_EQ(choices.size(), 2u * (1 + 2 * 3));
  EXPECT_EQ(choices.front().name(), "mean of layers, mean of heads");
  EXPECT_EQ(choices.back().name(), "layer 1, head 1, next step");
  EXPECT_EQ(attention_choices(std::vector{four_heads()[1]}).size(), 2u);
}

TEST(Alignment, BlanksSeparateWords) {
  const auto words = Vocabulary::from_entries(Segmentation::words, {{"a", 1}, {"dog", 1}});
  EXPECT_EQ(cut_words(words, " a  dog barks ").words, (std::vector{0, 1, 2, 3}));
  EXPECT_EQ(cut_words(words, "").words, (std::vector{0}));
  const auto characters =
      Vocabulary::from_entries(Segmentation::characters, {{"\u2581", 1}, {"a", 1}, {"b", 1}});
  EXPECT_EQ(cut_words(characters, "ab a b").words, (std::vector{0, 0, 1, 1, 2, 2, 3}));
  const auto no_blank = Vocabulary::from_entries(Segmentation::characters, {{"a", 1}, {"b", 1}});
  EXPECT_EQ(cut_words(no_blank, "ab a b").words, (std::vector{0, 0, 1, 1, 2, 2, 3}));
  const auto pieces = Vocabulary::from_entries(Segmentation::pieces, {{"a", 1}, {"b@@", 1}});
  EXPECT_EQ(cut_words(pieces, "a b@@ a a").words, (std::vector{0, 1, 1, 2, 3}));
}

TEST(Alignment, ShorteningLeavesWordsWithoutPieces) {
  WordPieces line{{4, 5, 6, 7}, {0, 0, 1, 2, 3}};
  line.shorten(4);
  EXPECT_EQ(line.ids.size(), 4u);
  line.shorten(2);
  EXPECT_EQ(line.words, (std::vector{0, 0, 3}));
  const SoftAlignment words = by_word({3, 3, {0, 1, 0, 0, 1, 0, 0, 0, 1}}, line.words, line.words);
  EXPECT_EQ(words.rows, 4);
  EXPECT_EQ(pharaoh(hard_alignment(words)), "0-0");  // words 1 and 2 were not read
}

TEST(Alignment, LinksDoNotDependOnTheBatch) {
  const TableModel model(9, 20, [](const auto&, const auto&) { return std::vector<double>(9); });
  std::vector<PairPieces> pairs;
  for (const int n : {3, 0, 1, 5, 2}) {
    WordPieces line{{}, {}};
    for (int i = 0; i < n; ++i) {
      line.ids.push_back(4 + i);
      line.words.push_back(i);
    }
    line.words.push_back(n);
    pairs.push_back({line, line});
  }
  for (const int64_t tokens : {1, 7, 100}) {
    std::vector<std::string> links(pairs.size(), "none");
    attend_pairs(model, pairs, tokens, [&](size_t i, std::span<const AttentionMap> maps) {
      links[i] = pharaoh(hard_alignment(word_attention(maps, {}, pairs[i])));
    });
    EXPECT_EQ(links, (std::vector<std::string>{"0-0 1-1 2-2", "none", "0-0", "0-0 1-1 2-2 3-3 4-4",
                                               "0-0 1-1"}));
  }
}

}  // namespace
}  // namespace fovea
