#include "explain/attention_figure.h"

#include <gtest/gtest.h>

#include "temporary.h"

namespace fovea {
namespace {

class AttentionFigureTest : public testing::Test {
 protected:
  // Each head has weights of its own: rows × cols of (1 + layer + 10 · head).
  void add(const std::string& kind, int64_t rows, int64_t cols, int64_t layer, int64_t head) {
    AttentionMap map;
    map.kind = kind, map.rows = rows, map.cols = cols, map.layer = layer, map.head = head;
    map.weights.assign(static_cast<size_t>(rows * cols), static_cast<float>(1 + layer + 10 * head));
    maps_.push_back(map);
  }
  AttentionFigureTest() {
    bundle_.source = Vocabulary::from_entries(Segmentation::words, {{"a", 2}, {"dog", 1}});
    bundle_.target = Vocabulary::from_entries(Segmentation::words, {{"ein", 2}, {"Hund", 1}});
    for (int64_t layer : {0, 1})
      for (int64_t head : {0, 1, 2}) add("cross", 3, 3, layer, head);
    add("encoder", 3, 3, 0, 0);
    add("decoder", 3, 3, 0, 0);
  }
  AttentionFigure figure(const FigureChoice& choice) {
    const std::vector<int32_t> source = bundle_.source.encode("a dog"),
                               target = bundle_.target.encode("ein Hund");
    std::vector<int32_t> from = source, to = target;
    from.push_back(kEos);
    to.push_back(kEos);
    return {bundle_, from, to, maps_, choice};
  }

  ModelBundle bundle_;
  std::vector<AttentionMap> maps_;
};

TEST_F(AttentionFigureTest, TheMeanOfAllOrOneHead) {
  const AttentionMatrix all = figure({}).matrix();
  EXPECT_EQ(all.title, "cross attention, mean of all layers, mean of heads");
  EXPECT_FLOAT_EQ(all.weights.front(), 11.5f);
  const AttentionMatrix one = figure({.layer = 1, .head = 2}).matrix();
  EXPECT_EQ(one.title, "cross attention, layer 1, head 2");
  EXPECT_FLOAT_EQ(one.weights.front(), 22);
  EXPECT_FLOAT_EQ(figure({.layer = 1}).matrix().weights.front(), 12);
  EXPECT_FLOAT_EQ(figure({.head = 1}).matrix().weights.front(), 11.5f);
}

TEST_F(AttentionFigureTest, SidesDependOnTheKind) {
  using Labels = std::vector<std::string>;
  const AttentionMatrix cross = figure({}).matrix();
  EXPECT_EQ(cross.target, (Labels{"ein", "Hund", "</s>"}));
  EXPECT_EQ(cross.source, (Labels{"a", "dog", "</s>"}));
  const AttentionMatrix encoder = figure({.kind = "encoder"}).matrix();
  EXPECT_EQ(encoder.target, encoder.source);
  EXPECT_EQ(encoder.source, cross.source);
  const AttentionMatrix decoder = figure({.kind = "decoder"}).matrix();
  EXPECT_EQ(decoder.target, decoder.source);
  EXPECT_EQ(decoder.target, (Labels{"<s>", "ein", "Hund"})) << "the words that the decoder reads";
}

TEST_F(AttentionFigureTest, TheGridHasAllHeads) {
  const AttentionGrid grid = figure({}).grid();
  EXPECT_EQ(grid.title, "cross attention");
  ASSERT_EQ(grid.layers.size(), 2u);
  ASSERT_EQ(grid.layers[1].size(), 3u);
  EXPECT_EQ(grid.layers[1][2].title, "cross attention, layer 1, head 2");
  EXPECT_FLOAT_EQ(grid.layers[0][1].weights.front(), 11);
}

TEST_F(AttentionFigureTest, AMechanismNamesItself) {
  maps_.resize(1);
  maps_[0].mechanism = "global";
  auto& own = bundle_.config.network.emplace<RecurrentConfig>();
  own.attention.kind = "global";
  own.attention.score = "dot";
  EXPECT_EQ(figure({}).matrix().title, "global attention, score dot");
}

TEST_F(AttentionFigureTest, ChoicesThatDoNotExist) {
  const auto error = [&](const FigureChoice& choice) {
    return message_of(ExitCode::usage, [&] { figure(choice); });
  };
  EXPECT_EQ(error({.layer = 2}), "`layer` 2: the model has layers 0 to 1");
  EXPECT_EQ(error({.head = 3}), "`head` 3: the model has heads 0 to 2");
  EXPECT_EQ(error({.kind = "encoder", .layer = 1}), "`layer` 1: the model has layers 0 to 0");
  maps_.clear();
  EXPECT_EQ(error({.kind = "decoder"}), "`kind` decoder: the model has no attention of this kind");
  EXPECT_EQ(error({}),
            "the model has no attention from target to source; choose another model with `model`");
}

}  // namespace
}  // namespace fovea
