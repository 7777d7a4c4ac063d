#include "document/document.h"

#include <gtest/gtest.h>

#include "text/sentence_gap.h"

namespace fovea {
namespace {

std::string joined(const std::string& text, const PassageOptions& options,
                   const std::vector<std::string>& translations) {
  const auto document = plain_document(text, options);
  EXPECT_EQ(document->sentences().size(), translations.size()) << text;
  std::vector<Translation> found;
  for (const std::string& translation : translations)
    found.emplace_back().n_best.emplace_back().text = translation;
  return document->render(found, 0);
}

TEST(SentenceGaps, GetABlankFromChineseToLanguagesWithBlanks) {
  const std::string text = "我是一个学生。我爱中国。";
  const std::vector<std::string> english{"I am a student.", "I love China."};
  EXPECT_EQ(joined(text, {"zh", "en"}, english), "I am a student. I love China.");
  EXPECT_EQ(joined(text, {"zh"}, english), "I am a student. I love China.") << "unknown target";
  EXPECT_EQ(joined("我是一个学生。　我爱中国。", {"zh", "en"}, english),
            "I am a student. I love China.");
  EXPECT_EQ(joined("　　我是一个学生。\n　　我爱中国。", {"zh", "en"}, english),
            "　　I am a student.\n　　I love China.");
}

TEST(SentenceGaps, LoseTheirBlanksInChineseAndJapanese) {
  const std::string text = "I am a student. I love China.";
  const std::vector<std::string> chinese{"我是一个学生。", "我爱中国。"};
  EXPECT_EQ(joined(text, {"en", "zh"}, chinese), "我是一个学生。我爱中国。");
  EXPECT_EQ(joined(text, {"en", "zh-TW"}, chinese), "我是一个学生。我爱中国。");
  EXPECT_EQ(joined(text, {"en", ""}, chinese), "我是一个学生。我爱中国。") << "unknown target";
  EXPECT_EQ(joined(text, {"en", "ja"}, {"私は学生です", "“中国”が好きです"}),
            "私は学生です“中国”が好きです");
  EXPECT_EQ(joined(text, {"en", "zh"}, {"Python 3.", "OK."}), "Python 3. OK.") << "no Chinese";
  EXPECT_EQ(joined("One.\nTwo.\tThree.", {"en", "zh"}, {"一。", "二。", "三。"}),
            "一。\n二。\t三。")
      << "line ends and tabs stay";
}

TEST(SentenceGaps, StayBetweenLanguagesOfTheSameKind) {
  EXPECT_EQ(joined("One.  Two.", {"en", "de"}, {"Eins.", "Zwei."}), "Eins.  Zwei.");
  EXPECT_EQ(joined("一。二。", {"zh", "ja"}, {"一。", "二。"}), "一。二。");
  EXPECT_EQ(joined("一。 二。", {"zh", "ja"}, {"一。", "二。"}), "一。 二。");
  EXPECT_EQ(joined("One. Two.", {"en", "th"}, {"หนึ่ง", "สอง"}), "หนึ่ง สอง")
      << "Thai has no full stop: a blank separates sentences";
}

TEST(SentenceGaps, OfALongChineseSentenceGetABlank) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += "我爱中国，";
  const std::vector<std::string> parts{"I love,", "love China."};
  EXPECT_EQ(joined(text, {"zh", "en"}, parts), "I love, love China.");
  EXPECT_EQ(joined(std::string(700, 'x'), {"en", "de"}, {"eins", "zwei"}), "einszwei")
      << "a word that was cut";
}

TEST(SentenceGaps, AreKnownBeforeTheTranslation) {
  EXPECT_EQ(plain_document("一。二。", {"zh", "en"})->before(1), " ");
  EXPECT_EQ(plain_document("One. Two.", {"en", "zh"})->before(1), "");
  EXPECT_EQ(plain_document("One. Two.", {"en", "de"})->before(1), " ");
  EXPECT_EQ(plain_document(" One.\nTwo.", {"en", "de"})->before(0), " ");
  EXPECT_EQ(html_document("<p>一。二。", {"zh", "en"})->before(1), " ");
  EXPECT_EQ(html_document("<p>One. Two.", {"en", "zh"})->before(1), "");
}

std::string joined_html(const std::string& html, const PassageOptions& options,
                        const std::vector<std::string>& translations) {
  const auto document = html_document(html, options);
  EXPECT_EQ(document->sentences().size(), translations.size()) << html;
  std::vector<Translation> found;
  for (const std::string& translation : translations)
    found.emplace_back().n_best.emplace_back().text = translation;
  return document->render(found, 0);
}

TEST(SentenceGaps, AreTheSameInMarkup) {
  EXPECT_EQ(joined_html("<p>我是学生。我爱中国。</p>", {"zh", "en"}, {"I am one.", "I love it."}),
            "<p>I am one. I love it.</p>");
  EXPECT_EQ(joined_html("<p>I am one. I love it.</p>", {"en", "zh"}, {"我是学生。", "我爱中国。"}),
            "<p>我是学生。我爱中国。</p>");
}

}  // namespace
}  // namespace fovea
