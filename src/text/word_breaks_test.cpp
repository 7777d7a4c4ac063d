#include "text/word_breaks.h"

#include <gtest/gtest.h>

#include "base/ascii.h"
#include "base/utf8.h"
#include "support/growth.h"
#include "text/tokenization.h"
#include "text_samples.h"

namespace fovea {
namespace {

using Words = std::vector<std::string>;

Words words(std::string_view text) {
  const auto found = text_words(text);
  return {found.begin(), found.end()};
}

TEST(WordBreaks, UseDictionaries) {
  EXPECT_EQ(words("我爱中国。"), (Words{"我", "爱", "中国", "。"}));
  EXPECT_EQ(words("私は学生です。"), (Words{"私", "は", "学生", "です", "。"}));
  EXPECT_EQ(words("ฉันรักประเทศไทย"), (Words{"ฉัน", "รัก", "ประเทศไทย"}));
  EXPECT_GT(words("ຂ້ອຍຮັກເຈົ້າ").size(), 1u) << "Lao";
  EXPECT_GT(words("ខ្ញុំជានិស្សិត").size(), 1u) << "Khmer";
  EXPECT_GT(words("ကျွန်တော်ကျောင်းသားပါ").size(), 1u) << "Myanmar";
}

TEST(WordBreaks, AreOnlyNextToLettersOfUnspacedScripts) {
  EXPECT_EQ(words("我用Python写代码"), (Words{"我", "用", "Python", "写", "代码"}));
  EXPECT_EQ(words("it's well-known (really) 3.5% user@example.com"),
            (Words{"it's", "well-known", "(really)", "3.5%", "user@example.com"}));
  EXPECT_EQ(words("我：“爱中国。”OK。"), (Words{"我", "：", "“", "爱", "中国", "。", "”OK", "。"}));
  EXPECT_EQ(words("iPhone-15 很好"), (Words{"iPhone-15", "很好"}));
  EXPECT_EQ(words("Привет мир, 안녕 세계"), (Words{"Привет", "мир,", "안녕", "세계"}));
  EXPECT_EQ(words("我们　爱"), (Words{"我们　", "爱"})) << "U+3000";
}

TEST(WordBreaks, DoNotChangeSegmentedText) {
  EXPECT_EQ(words("我是 一 个学 生 。"), (Words{"我是", "一", "个学", "生", "。"}));
  EXPECT_EQ(words("在 Kubernetes 中运行程序"), (Words{"在", "Kubernetes", "中", "运行", "程序"}))
      << "blanks around Latin words do not segment a text";
  EXPECT_EQ(words("床前明月光 疑是地上霜").size(),
            words("床前明月光").size() + words("疑是地上霜").size())
      << "one blank in ten letters does not either";
}

TEST(WordBreaks, KeepAllTextAndSplitNoCharacter) {
  Random random(3);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = canonical(samples::wild(random) + (i % 2 ? "我爱中国" : ""));
    std::string joined, blanked;
    for (const std::string_view word : text_words(text)) {
      ASSERT_TRUE(is_utf8(word)) << text;
      joined += word;
    }
    for (const std::string_view word : split_words(text)) blanked += word;
    ASSERT_EQ(joined, blanked);
  }
}

TEST(WordBreaks, TakeLinearTime) {
  const auto seconds = [](size_t copies) {
    std::string text;
    for (size_t i = 0; i < copies; ++i) text += "他今天在北京卖一杯咖啡和";
    return testing::least_seconds([](const std::string& read) { text_words(read); }, text, 3);
  };
  EXPECT_LT(seconds(16'000), 2.5 * seconds(8'000));
}

}  // namespace
}  // namespace fovea
