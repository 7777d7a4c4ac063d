#include "train/validation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/label_predictor.h"

namespace fovea {
namespace {

// A model that gives a text the label of the same number as its first word.
class Echo : public Model, public LabelPredictor {
 public:
  Echo() : Model(ElementType::f32, Cpu{}, {.max_length = 100, .target_words = 8}) {}
  BatchLoss loss(const TrainingBatch& batch, double) const override {
    const std::vector<double> half(batch.target_out.size(), std::log(0.5));
    return {Tensor::of({1}, std::vector<double>{1}, ElementType::f32),
            Tensor::of({std::ssize(half)}, half, ElementType::f32)};
  }
  LabelScores predict_labels(const TokenBatch& texts) const override {
    constexpr int64_t kLabels = 8 - kFirstLabel;
    std::vector<double> scores(static_cast<size_t>(kLabels * texts.sentences()), -1);
    for (int64_t b = 0; b < texts.sentences(); ++b) {
      const int32_t first = texts.ids[static_cast<size_t>(texts.offsets[static_cast<size_t>(b)])];
      scores[static_cast<size_t>(kLabels * b + first - kFirstLabel)] = 2;
    }
    return {Tensor::of({texts.sentences(), kLabels}, scores, ElementType::f32), {}};
  }
};

HeldOut examples() {
  HeldOut text;
  text.corpus = Corpus(TargetKind::labels);
  const auto add = [&](std::vector<int32_t> words, int32_t label) {
    text.corpus.add(words, std::vector{label}, text.corpus.size() + 1);
  };
  add({4, 5}, 4);
  add({5}, 4);  // this label is wrong
  add({6, 4, 7, 5, 4, 4, 4, 4}, 6);
  add({7}, 7);
  return text;
}

const TranslateLines kNoLines = [](const Model&, const Lines&, int64_t) -> Lines {
  ADD_FAILURE() << "there is nothing to translate";
  return {};
};

TEST(Validation, AccuracyCountsLabels) {
  const ValidOptions options{.metrics = {"accuracy"}, .stop_metric = "accuracy"};
  for (const int64_t tokens : {1, 5, 4096}) {
    const auto values =
        measure(Echo(), examples(), options, tokens, kNoLines, [] { return false; });
    ASSERT_TRUE(values.has_value());
    ASSERT_EQ(values->size(), 3u);
    EXPECT_EQ((*values)[0].name, "loss");
    EXPECT_NEAR((*values)[0].value, std::log(2.0), 1e-6) << "per label";
    EXPECT_EQ((*values)[2].name, "accuracy");
    EXPECT_EQ((*values)[2].value, 75);
  }
  EXPECT_TRUE(higher_is_better("accuracy"));
}

// For 13a each of these lines is one word, so there are no bigrams.
TEST(Validation, BleuOfChineseIsNotZero) {
  HeldOut text = examples();
  text.sources = {"x", "y"};
  text.references = {"我是一个学生。", "我爱中国。"};
  const TranslateLines translate = [](const Model&, const Lines&, int64_t) {
    return Lines{"我是一个学生。", "我爱她。"};
  };
  const auto score = [&](BleuTokenizer tokenize) {
    const ValidOptions options{.metrics = {"bleu"}, .tokenize = tokenize};
    return measure(Echo(), text, options, 100, translate, [] { return false; })->at(2).value;
  };
  EXPECT_EQ(score(BleuTokenizer::mteval13), 0);
  EXPECT_GT(score(BleuTokenizer::zh), 50);
  EXPECT_EQ(score(BleuTokenizer::automatic), score(BleuTokenizer::zh));
  EXPECT_EQ(ValidOptions().tokenize, BleuTokenizer::automatic);
}

// 13a splits off punctuation. The translation differs in the case of one of seven words.
TEST(Validation, BleuUsesTheRequestedTokenizerAndCase) {
  HeldOut text = examples();
  text.sources = {"x"};
  text.references = {"Hello, small world of words!"};
  const TranslateLines translate = [](const Model&, const Lines& sources, int64_t) {
    EXPECT_EQ(sources, Lines{"x"});
    return Lines{"hello , small world of words !"};
  };
  const auto scores = [&](BleuTokenizer tokenize, bool lowercase) {
    const ValidOptions options{
        .metrics = {"bleu", "chrf"}, .tokenize = tokenize, .lowercase = lowercase};
    const auto values = measure(Echo(), text, options, 100, translate, [] { return false; });
    EXPECT_EQ(values->at(2).name, "bleu");
    EXPECT_EQ(values->at(3).name, "chrf");
    return std::pair(values->at(2).value, values->at(3).value);
  };
  const auto [cased, cased_chrf] = scores(BleuTokenizer::mteval13, false);
  const auto [lower, lower_chrf] = scores(BleuTokenizer::mteval13, true);
  const auto [uncut, uncut_chrf] = scores(BleuTokenizer::none, true);
  EXPECT_NEAR(cased, 100 * std::pow(6.0 / 7 * 5 / 6 * 4 / 5 * 3 / 4, 0.25), 1e-9);
  EXPECT_NEAR(lower, 100, 1e-9);
  EXPECT_NEAR(uncut, 100 * std::pow(3.0 / 7 * 2 / 6 * 1 / 5 * 0.5 / 4, 0.25), 1e-9);
  EXPECT_LT(cased_chrf, 99);
  EXPECT_NEAR(lower_chrf, 100, 1e-9);
  EXPECT_NEAR(uncut_chrf, 100, 1e-9);
}

TEST(Validation, HasNoResultIfAskedToStop) {
  const ValidOptions options{.metrics = {"accuracy"}, .stop_metric = "accuracy"};
  int asked = 0;  // loss and accuracy check once per batch: two batches each
  const auto late = [&] { return ++asked > 3; };
  EXPECT_FALSE(measure(Echo(), examples(), options, 5, kNoLines, late).has_value());
}

}  // namespace
}  // namespace fovea
