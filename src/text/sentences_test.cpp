#include "text/sentences.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace fovea {
namespace {

std::vector<std::string> sentences(std::string_view text, const std::string& language = "en") {
  std::vector<std::string> found;
  std::string all;
  for (const TextSpan& s : split_sentences(text, language)) {
    all += s.text;
    if (s.is_sentence) found.emplace_back(s.text);
  }
  EXPECT_EQ(all, text) << "the spans must be the whole text";
  return found;
}

using List = std::vector<std::string>;

TEST(Sentences, EndAtPeriodsAndLineEnds) {
  EXPECT_EQ(sentences("One. Two!  Three?"), (List{"One.", "Two!", "Three?"}));
  EXPECT_EQ(sentences("One\r\n\n  two \n"), (List{"One", "two"}));
  EXPECT_EQ(sentences(""), List{});
  EXPECT_EQ(sentences(" \n\t "), List{});
  EXPECT_EQ(sentences("It costs 3.50 euros. Yes."), (List{"It costs 3.50 euros.", "Yes."}));
}

TEST(Sentences, ContinueAfterAbbreviationsAndOrdinals) {
  EXPECT_EQ(sentences("Mr. Smith saw Dr. Jones. He left."),
            (List{"Mr. Smith saw Dr. Jones.", "He left."}));
  EXPECT_EQ(sentences("J. S. Bach wrote it. I did not. So did I. Yes."),
            (List{"J. S. Bach wrote it.", "I did not.", "So did I.", "Yes."}));
  EXPECT_EQ(sentences("Am 3. Oktober war es kalt. Ja.", "de"),
            (List{"Am 3. Oktober war es kalt.", "Ja."}));
}

TEST(Sentences, SymbolsWithoutWordsAreNotSentences) {
  EXPECT_EQ(sentences("😀 !!! …"), List{});
  EXPECT_EQ(sentences("Hello 😀. *** Bye."), (List{"Hello 😀.", "*** Bye."}));
}

TEST(Sentences, LongOnesAreCutAtCommasOrBlanks) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += i % 40 == 39 ? "word, " : "word ";
  for (const std::string& s : sentences(text)) {
    EXPECT_LE(s.size(), SentenceLimit::kBytes);
    EXPECT_TRUE(s.starts_with("word"));
  }
  const std::string run(5000, 'x');
  EXPECT_EQ(sentences(run).size(), (5000 + SentenceLimit::kBytes - 1) / SentenceLimit::kBytes);
  std::string wide;
  for (int i = 0; i < 2000; ++i) wide += "ä";
  for (const std::string& s : sentences(wide)) EXPECT_TRUE(is_utf8(s));
}

TEST(Sentences, EndWithoutABlankInChineseAndJapanese) {
  EXPECT_EQ(sentences("我是一个学生。我爱中国。", "zh"), (List{"我是一个学生。", "我爱中国。"}));
  EXPECT_EQ(sentences("真的吗？是的！好｡再见", ""), (List{"真的吗？", "是的！", "好｡", "再见"}));
  EXPECT_EQ(sentences("私は学生です．中国が好きです。", "ja"),
            (List{"私は学生です．", "中国が好きです。"}));
  EXPECT_EQ(sentences("圆周率是３．１４。对。", "zh"), (List{"圆周率是３．１４。", "对。"}));
  EXPECT_EQ(sentences("他走了……我不知道为什么。", "zh"), (List{"他走了……", "我不知道为什么。"}));
  EXPECT_EQ(sentences("等…我", "zh"), List{"等…我"}) << "one … does not end a sentence";
}

TEST(Sentences, KeepClosingQuotesAndBrackets) {
  EXPECT_EQ(sentences("「行くよ。」『本当？』（はい。）終わり。", "ja"),
            (List{"「行くよ。」", "『本当？』", "（はい。）", "終わり。"}));
  EXPECT_EQ(sentences("“我爱中国。”《书！》走了……”好。", "zh"),
            (List{"“我爱中国。”", "《书！》", "走了……”", "好。"}));
}

TEST(Sentences, LongChineseOnesAreCutAtCommasThenWordsNeverInsideGraphemes) {
  std::string text;
  for (int i = 0; i < 60; ++i) text += i % 7 == 6 ? "我爱中国，" : "我爱中国";
  for (const std::string& s : sentences(text, "zh")) {
    EXPECT_LE(s.size(), SentenceLimit::kBytes);
    EXPECT_TRUE(s.ends_with("，") || text.ends_with(s)) << s;
  }
  std::string run;
  for (int i = 0; i < 200; ++i) run += "我爱中国";
  for (const std::string& s : sentences(run, "zh"))
    EXPECT_FALSE(s.ends_with("中")) << "中国 is one word: " << s;
  std::string family, emoji = "👨‍👩‍👧‍👦";
  for (int i = 0; i < 100; ++i) family += emoji + (i % 2 ? "x" : "");
  for (const std::string& s : sentences(family)) {
    EXPECT_TRUE(s.starts_with(emoji) || s.starts_with("x")) << s;
    EXPECT_TRUE(s.ends_with(emoji) || s.ends_with("x")) << s;
  }
}

TEST(Sentences, KeepTheLimitOfTheModel) {
  std::vector<Vocabulary::Entry> letters{{"\u2581", 1}, {"w", 1}};
  const Vocabulary characters = Vocabulary::from_entries(Segmentation::characters, letters);
  const SentenceLimit limit{&characters, 20};
  std::string text, all, last;
  for (int i = 0; i < 50; ++i) text += i % 5 == 4 ? "www, " : "www ";
  for (int i = 0; i < 50; ++i) text += "我爱中国";
  for (const TextSpan& s : split_sentences(text, "en", limit)) {
    all += s.text;
    EXPECT_TRUE(is_utf8(s.text));
    if (s.is_sentence) {
      EXPECT_LE(characters.encode(s.text).size(), 20u) << s.text;
      EXPECT_TRUE(last.empty() || characters.encode(last).size() >= 8) << "too short: " << last;
      last = s.text;
    }
  }
  EXPECT_EQ(all, text);
  EXPECT_EQ(split_sentences("www www", "en", SentenceLimit{&characters, 1}).front().text, "w");
}

}  // namespace
}  // namespace fovea
