#include "view/label.h"

#include <gtest/gtest.h>

#include "base/utf8.h"
#include "thread_seconds.h"

namespace fovea {
namespace {

TEST(Label, DoesNotChangeWords) {
  for (const char* word :
       {"dog", "▁Hund", "日本語", "cafe\u0301", "שלום", "👨‍👩‍👧", "<s>", "@@", ""})
    EXPECT_EQ(label(word), word);
}

TEST(Label, ReplacesControlCharacters) {
  EXPECT_EQ(label("\x1b[31mred"), "␛[31mred");
  EXPECT_EQ(label("a\nb\tc\rd"), "a␊b␉c␍d");
  EXPECT_EQ(label("\x7f"), "␡");
  EXPECT_EQ(label("\u202Eevil"), "\\u{202E}evil");
  EXPECT_EQ(label("\u2066x\u2069"), "\\u{2066}x\\u{2069}");
  EXPECT_EQ(label("a\u009Bb"), "a\\u{9B}b");  // a one-character escape of 8-bit terminals
  EXPECT_EQ(label("a\u2028b"), "a\\u{2028}b");
  EXPECT_EQ(label("\uFFFF"), "\\u{FFFF}");
  EXPECT_EQ(label(std::string_view("\0", 1)), "␀");
  EXPECT_EQ(label("a\xff\xc3"), "a\uFFFD\uFFFD");
}

TEST(Label, ShortensByColumns) {
  EXPECT_EQ(label("abcdef", 6), "abcdef");
  EXPECT_EQ(label("abcdefg", 6), "abcde…");
  EXPECT_EQ(label("日本語日本語", 6), "日本…");
  EXPECT_EQ(label("日本語", 6), "日本語");
  EXPECT_EQ(columns(label(std::string(100'000, 'x'), 24)), 24);
  EXPECT_LE(label(std::string(100'000, 'x'), 24).size(), 30u);
}

TEST(Label, LimitsTheMarksOfALetter) {
  const std::string six = "\u0301\u0302\u0303\u0304\u0305\u0306";
  EXPECT_EQ(label("e" + six + "\u0307\u0308x"), "e" + six + "x");
  EXPECT_EQ(label("\u0301"), "◌\u0301");
  std::string pile = "e";
  for (int i = 0; i < 50'000; ++i) pile += "\u0301";
  const double start = thread_seconds();
  EXPECT_LE(label(pile + "x").size(), 5000u);
  EXPECT_LE(columns(label(pile)), 24);
  EXPECT_LT(thread_seconds() - start, time_limit(1));
}

TEST(Label, MeasuresColumns) {
  EXPECT_EQ(columns(""), 0);
  EXPECT_EQ(columns("dog"), 3);
  EXPECT_EQ(columns("日本語"), 6);
  EXPECT_EQ(columns("cafe\u0301"), 4);
  EXPECT_EQ(columns("👨‍👩‍👧"), 2);
  EXPECT_EQ(columns("🇩🇪"), 2);
  EXPECT_EQ(columns("한국"), 4);
}

TEST(Label, SplitsIntoLetters) {
  EXPECT_EQ(letters("e\u0301te\u0301"), (std::vector<std::string>{"e\u0301", "t", "e\u0301"}));
  EXPECT_EQ(letters("🇩🇪🇫🇷"), (std::vector<std::string>{"🇩🇪", "🇫🇷"}));
  EXPECT_EQ(letters("a👨‍👩‍👧b"),
            (std::vector<std::string>{"a", "👨‍👩‍👧", "b"}));
}

TEST(Label, KnowsScripts) {
  EXPECT_TRUE(right_to_left("שלום"));
  EXPECT_TRUE(right_to_left("abc العربية"));
  EXPECT_FALSE(right_to_left("dog 123"));
  EXPECT_TRUE(joined_script("العربية"));
  EXPECT_TRUE(joined_script("हिन्दी"));
  EXPECT_FALSE(joined_script("שלום"));
  EXPECT_FALSE(joined_script("well-known – dog"));
}

TEST(Label, EscapesForXml) {
  EXPECT_EQ(xml("<a href=\"x\">'&"), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;");
}

}  // namespace
}  // namespace fovea
