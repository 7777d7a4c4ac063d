#include "decode/model_selection.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

const std::vector<BundledModel> kModels = {{"m/en-de", "en", "de"},
                                           {"m/de-en", "de", "en"},
                                           {"m/en-zh", "en", "zh-Hans"},
                                           {"m/zh-en", "zh-Hans", "en"}};

std::string chosen(const LanguageChoice& choice, std::string_view text) {
  const BundledModel* const model = choose_model(kModels, choice, text);
  return model ? model->directory : "none";
}

TEST(ModelSelection, TheLanguageOfTheTextDecides) {
  EXPECT_EQ(chosen({}, "A small dog runs through the snow."), "m/en-de");
  EXPECT_EQ(chosen({}, "Das ist ein kleiner Hund."), "m/de-en");
  EXPECT_EQ(chosen({}, "我是一个学生。"), "m/zh-en");
  EXPECT_EQ(chosen({}, "我爱中国。"), "m/zh-en");
  EXPECT_EQ(chosen({}, "我愛中國。"), "m/zh-en") << "traditional characters";
  EXPECT_EQ(chosen({}, "\n42\n我爱中国。\n"), "m/zh-en") << "numbers have no language";
}

TEST(ModelSelection, NamesOfPeopleAndPlacesDoNotDecide) {
  for (const char* text : {"I know Jürgen Müller.", "Ask Jürgen.", "I was in Österreich."})
    EXPECT_EQ(chosen({}, text), "m/en-de") << text;
  for (const char* text : {"Mary war hier.", "Wie geht es dir?", "Wo ist der Bahnhof?"})
    EXPECT_EQ(chosen({}, text), "m/de-en") << text;
}

TEST(ModelSelection, TheDefaultIsUsedForOtherLanguages) {
  EXPECT_EQ(chosen({}, ""), "m/en-de");
  EXPECT_EQ(chosen({}, "42"), "m/en-de");
  EXPECT_EQ(chosen({}, "Это маленькая собака."), "m/en-de");
}

TEST(ModelSelection, OptionsDecideFirst) {
  EXPECT_EQ(chosen({.to = "zh"}, "A small dog runs."), "m/en-zh");
  EXPECT_EQ(chosen({.to = "en"}, "我是一个学生。"), "m/zh-en");
  EXPECT_EQ(chosen({.to = "en"}, "42"), "m/de-en") << "the first into English";
  EXPECT_EQ(chosen({.from = "de"}, "我是一个学生。"), "m/de-en");
  EXPECT_EQ(chosen({.from = "ZH-TW", .to = "EN-us"}, ""), "m/zh-en");
  EXPECT_EQ(chosen({.to = "de"}, "我是一个学生。"), "m/en-de") << "the only one into German";
}

TEST(ModelSelection, UnknownDirectionsHaveNoModel) {
  EXPECT_EQ(chosen({.to = "fr"}, "A small dog runs."), "none");
  EXPECT_EQ(chosen({.from = "de", .to = "zh"}, ""), "none");
}

}  // namespace
}  // namespace fovea
