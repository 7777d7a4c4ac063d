#include "compare/comparison_plan.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/network_settings.h"
#include "temporary.h"

namespace fovea {
namespace {

class Plan : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& text) {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }
  ComparisonPlan plan(const std::string& text) {
    return ComparisonPlan::read(file("compare.yml", text));
  }
  std::string fault(const std::string& text) {
    return message_of(ExitCode::data, [&] {
      const ComparisonPlan read = plan(text);
      for (const ComparisonVariant& variant : read.variants) read.options_of(variant, {});
    });
  }

  TemporaryFolder folder_;
};

TEST_F(Plan, VariantsChangeTheirSettingsAndNothingElse) {
  const ComparisonPlan p = plan(
      "model: {type: recurrent, size: 24}\n"
      "train.seed: 7\n"
      "compare: {sentence: 3}\n"
      "variants:\n"
      "  none: {model.attention: none}\n"
      "  local:\n"
      "    model:\n"
      "      attention: local-p\n"
      "      score: general\n"
      "    train.seed: 9\n"
      "  as-it-is:\n");
  EXPECT_EQ(p.options.sentence, 3);
  ASSERT_EQ(p.variants.size(), 3u);
  EXPECT_EQ(p.variants[1].name, "local");
  EXPECT_EQ(p.variants[1].changes,
            (std::vector<std::string>{"model.attention: local-p", "model.score: general",
                                      "train.seed: 9"}));
  const TrainOptions none = p.options_of(p.variants[0], {}),
                     local = p.options_of(p.variants[1], {}),
                     plain = p.options_of(p.variants[2], {"model.size=32"});
  EXPECT_EQ(recurrent_of(none.model).attention.kind, "none");
  EXPECT_EQ(none.model.size, 24);
  EXPECT_EQ(none.train.seed, 7u);
  EXPECT_EQ(recurrent_of(local.model).attention.kind, "local-p");
  EXPECT_EQ(recurrent_of(local.model).attention.score, "general");
  EXPECT_EQ(local.train.seed, 9u);
  EXPECT_EQ(recurrent_of(plain.model).attention.kind, "global");
  EXPECT_EQ(plain.model.size, 32);
}

TEST_F(Plan, AVariantMayChangeNothing) {
  const ComparisonPlan p = plan(
      "model.type: recurrent\n"
      "variants:\n"
      "  a: {}\n"
      "  b: {model.attention: none}\n"
      "  c: ~\n"
      "  d: {model: {}}\n");
  ASSERT_EQ(p.variants.size(), 4u);
  for (const ComparisonVariant& variant : p.variants) {
    const ModelConfig model = p.options_of(variant, {}).model;
    EXPECT_EQ(recurrent_of(model).attention.kind, variant.name == "b" ? "none" : "global");
  }
  EXPECT_TRUE(p.variants[0].changes.empty());
  EXPECT_NE(fault("variants:\n  a: {}\n  a: {}\n").find("twice"), std::string::npos);
  EXPECT_EQ(plan("variants: {}\n").variants.size(), known_variants().size());
}

TEST_F(Plan, BaseIsARecipeBesideTheFile) {
  file("recipe.yml", "model: {type: recurrent, size: 24}\ndata: {train_source: [a, b]}\n");
  const ComparisonPlan p = plan("base: recipe.yml\nmodel.size: 48\nvariants: [static, window]\n");
  ASSERT_EQ(p.variants.size(), 2u);
  const TrainOptions options = p.options_of(p.variants[1], {});
  EXPECT_EQ(recurrent_of(options.model).attention.kind, "window");
  EXPECT_EQ(options.model.size, 48);
  EXPECT_EQ(options.data.train_source, (std::vector<std::string>{"a", "b"}));
}

TEST_F(Plan, BaseMayBeAComparison) {
  file("there.yml",
       "data: {train_source: [a], train_target: [b]}\n"
       "compare: {sentence: 3, length_step: 7}\n"
       "model.type: recurrent\n"
       "variants: {large: {model.size: 48}, small: {model.size: 24}}\n");
  const ComparisonPlan back = plan(
      "base: there.yml\n"
      "data: {train_source: [b], train_target: [a]}\n"
      "compare: {sentence: 5}\n");
  EXPECT_EQ(back.options.sentence, 5);
  EXPECT_EQ(back.options.length_step, 7);
  ASSERT_EQ(back.variants.size(), 2u);
  const TrainOptions options = back.options_of(back.variants[1], {});
  EXPECT_EQ(options.model.size, 24);
  EXPECT_STREQ(options.model.type(), "recurrent");
  EXPECT_EQ(options.data.train_source, (std::vector<std::string>{"b"}));

  const ComparisonPlan others = plan("base: there.yml\nvariants: [none, static]\n");
  ASSERT_EQ(others.variants.size(), 2u);
  EXPECT_EQ(others.variants[1].name, "static");
  EXPECT_NE(fault("base: compare.yml\n").find("base of a base"), std::string::npos);
}

TEST_F(Plan, WithoutVariantsAllMechanismsAreCompared) {
  const ComparisonPlan p = plan("model.type: recurrent\n");
  EXPECT_EQ(p.variants.size(), known_variants().size());
  for (const ComparisonVariant& variant : p.variants) {
    const ModelConfig model = p.options_of(variant, {}).model;
    EXPECT_EQ(recurrent_of(model).attention.kind, variant.name);
  }
}

TEST_F(Plan, FaultsNameTheLineOfTheFile) {
  EXPECT_NE(fault("model.type: recurrent\n\nvariants:\n  a: {model.attention: none,\n"
                  "      model.atention: x}\n")
                .find("compare.yml:5"),
            std::string::npos);
  EXPECT_NE(fault("model.tipe: recurrent\n").find("compare.yml:1"), std::string::npos);
  EXPECT_NE(fault("\ncompare: {sentense: 1}\n").find("compare.yml:2"), std::string::npos);
  EXPECT_NE(fault("variants:\n  a: 5\n").find("compare.yml:2"), std::string::npos);
  EXPECT_NE(fault("variants: [none, nothing]\n").find("nothing"), std::string::npos);
  EXPECT_NE(fault("variants: [none, none]\n").find("twice"), std::string::npos);
  EXPECT_NE(fault("variants:\n  ../a: {train.seed: 1}\n").find("folder"), std::string::npos);
  EXPECT_NE(fault("variants:\n  - name: a\n").find("list"), std::string::npos);
  EXPECT_NE(fault("compare: {gold: a}\nvariants: [none]\n").find("gold"), std::string::npos);
}

TEST_F(Plan, AllModelsReadTheSameText) {
  TrainOptions a, b;
  EXPECT_NO_THROW(check_same_text(a, b, "b"));
  b.model.size = 7;
  EXPECT_NO_THROW(check_same_text(a, b, "b"));
  b.data.test_source = {"other"};
  EXPECT_NE(
      message_of(ExitCode::data, [&] { check_same_text(a, b, "b"); }).find("data.test_source"),
      std::string::npos);
}

}  // namespace
}  // namespace fovea
