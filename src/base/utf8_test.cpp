#include "base/utf8.h"

#include <gtest/gtest.h>
#include <unicode/unistr.h>

#include <cstdlib>

#include "base/random.h"

namespace fovea {
namespace {

// ICU's decoder as an independent oracle: it treats bad bytes in the same way.
std::string icu_replaced(const std::string& text) {
  std::string out;
  icu::UnicodeString::fromUTF8(text).toUTF8String(out);
  return out;
}

void expect_agreement(const std::string& text) {
  const std::string expected = icu_replaced(text);
  ASSERT_EQ(replace_invalid_utf8(text), expected) << printable(text);
  // A text is valid exactly when replacing changes nothing.
  ASSERT_EQ(is_utf8(text), text == expected) << printable(text);
  ASSERT_EQ(count_code_points(text), icu::UnicodeString::fromUTF8(text).countChar32());
}

TEST(Utf8, AgreesWithIcuOnAllShortSequences) {
  for (int a = 0; a < 256; ++a) {
    expect_agreement({static_cast<char>(a)});
    for (int b = 0; b < 256; ++b) expect_agreement({static_cast<char>(a), static_cast<char>(b)});
  }
}

// Bytes near the limits of the rules, so that random strings are often almost valid.
std::string nearly_valid(Random& random) {
  static constexpr unsigned char kEdges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                             0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                             0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFE, 0xFF};
  std::string text;
  for (uint64_t n = random.below(12); n > 0; --n) {
    switch (random.below(3)) {
      case 0:
        text.push_back(static_cast<char>(kEdges[random.below(sizeof kEdges)]));
        break;
      case 1:
        text.push_back(static_cast<char>(random.below(256)));
        break;
      default: {
        const auto c = static_cast<char32_t>(random.below(0x110000));
        append_utf8(text, c);  // a surrogate becomes three bad bytes
      }
    }
  }
  return text;
}

TEST(Utf8, AgreesWithIcuOnRandomStrings) {
  Random random(1);
  const bool release = std::getenv("FOVEA_RELEASE_TESTS") != nullptr;
  for (int i = 0, n = release ? 10'000'000 : 300'000; i < n; ++i) {
    expect_agreement(nearly_valid(random));
    if (HasFatalFailure()) return;
  }
}

TEST(Utf8, NamesTheFirstBadByte) {
  EXPECT_EQ(find_invalid_utf8("abc"), std::string_view::npos);
  EXPECT_EQ(find_invalid_utf8("ab\xffz"), 2u);
  EXPECT_EQ(find_invalid_utf8("é\xc3"), 2u);              // truncated
  EXPECT_EQ(find_invalid_utf8("\xe2\x82"), 0u);           // truncated
  EXPECT_EQ(find_invalid_utf8("x\xed\xa0\x80"), 1u);      // surrogate
  EXPECT_EQ(find_invalid_utf8("x\xc0\xaf"), 1u);          // overlong
  EXPECT_EQ(find_invalid_utf8("x\xf4\x90\x80\x80"), 1u);  // beyond U+10FFFF
}

TEST(Utf8, ReplacesMaximalSubparts) {  // the example of Unicode, table 3-8
  EXPECT_EQ(replace_invalid_utf8("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41"), "����A");
  EXPECT_EQ(replace_invalid_utf8("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41"), "��������A");
}

TEST(Utf8, IteratesByCodePoint) {
  std::u32string seen;
  for (char32_t c : code_points("aé€😀\xff")) seen.push_back(c);
  EXPECT_EQ(seen, U"aé€😀\uFFFD");
  const CodePoints points = code_points("é€");
  EXPECT_EQ((++points.begin()).offset(), 2u);
}

TEST(Utf8, EncodesEveryScalarValue) {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c == 0xD800) c = 0xE000;
    std::string text;
    append_utf8(text, c);
    const CodePoint back = decode_utf8(text, 0);
    ASSERT_TRUE(back.valid && back.value == c && static_cast<size_t>(back.length) == text.size());
  }
}

TEST(Utf8, CountsColumns) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("größer"), 6);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("日本"), 4);
  EXPECT_EQ(display_width("😀"), 2);
  EXPECT_EQ(display_width("a\u200bb"), 2);
  EXPECT_EQ(display_width(""), 0);
}

TEST(Utf8, Normalises) {
  EXPECT_EQ(nfc("e\u0301"), "é");
  EXPECT_EQ(nfc("é"), "é");
  EXPECT_EQ(nfc("plain"), "plain");
  EXPECT_EQ(nfc("\u1112\u1161\u11ab"), "한");
  EXPECT_EQ(nfc("a\xff"), "a\uFFFD");
}

TEST(Utf8, MakesTextPrintable) {
  EXPECT_EQ(printable("a\x1b[2J\xff ü"), "a\\x1b[2J\\xff ü");
  EXPECT_EQ(printable(std::string(200, 'x'), 10), "xxxxxxxxxx…");
  EXPECT_EQ(printable("\u202e"), "\\xe2\\x80\\xae");  // right-to-left override
}

}  // namespace
}  // namespace fovea
