#include "eval/metric_tokenizers.h"

#include <gtest/gtest.h>

#include "base/check.h"

namespace fovea {
namespace {

std::string joined(const Characters& text) {
  std::string result;
  for (std::u32string_view word : words_of(text))
    result += (result.empty() ? "" : " ") + utf8_of(word);
  return result;
}

std::string tokens(const char* name, const char* line) {
  return joined(tokenize_for_bleu(bleu_tokenizer(name), characters_of(line)));
}

std::string ter_tokens(const TercomOptions& options, const char* line) {
  return joined(tokenize_for_ter(options, characters_of(line)));
}

TEST(Characters, IllFormedBytesBecomeReplacementCharacters) {
  EXPECT_EQ(characters_of("a\xff"
                          "b\xe4\xb8"),
            U"a\ufffdb\ufffd");
  EXPECT_EQ(utf8_of(U"a\u4f60\U0001f600"), "a你😀");
}

TEST(Characters, LowerCaseFollowsUnicode) {
  EXPECT_EQ(lower_case(U"ΣΊΣΥΦΟΣ ΑΣ."), U"σίσυφος ας.");
  EXPECT_EQ(lower_case(U"İSTANBUL"), U"i\u0307stanbul");
  EXPECT_EQ(lower_case(Characters(100, U'İ')).size(), 200u);  // longer than the first buffer
  EXPECT_EQ(lower_case(U""), U"");
  EXPECT_EQ(lower_case(U"𐐀"), U"𐐨");
}

TEST(Characters, BlanksAreThoseOfPython) {
  EXPECT_EQ(words_of(U"a\u0085b\u00a0c\u2028d\u3000e\u001cf\u200bg").size(), 6u);
  EXPECT_EQ(without_trailing_blanks(U"a \u2003\r\n"), U"a");
  EXPECT_TRUE(words_of(U" \t ").empty());
}

TEST(Tokenize, Mteval13a) {
  EXPECT_EQ(tokens("13a", "It costs $1,000.50 - or 3.5%..."),
            "It costs $ 1,000.50 - or 3.5 % . . .");
  EXPECT_EQ(tokens("13a", "a 5-year plan, 10:30"), "a 5 - year plan , 10 : 30");
  EXPECT_EQ(tokens("13a", "“curly”…—"), "“curly”…—");
  EXPECT_EQ(tokens("13a", "&quot;x&amp;lt;y&gt; <skipped>"), "\" x < y >");
  EXPECT_EQ(tokens("13a", "over-\nnight"), "overnight");
  EXPECT_EQ(tokens("13a", ""), "");
}

TEST(Tokenize, International) {
  EXPECT_EQ(tokens("intl", "«oui» 3.5€, E-Mail 2020."), "« oui » 3.5 € , E - Mail 2020.");
}

TEST(Tokenize, ChineseWithTheKnownErrorOfTheTable) {
  EXPECT_EQ(tokens("zh", "你好，x.y"), "你 好 ， x . y");
  EXPECT_EQ(tokens("zh", "“curly”…—"), "“ curly ” … —");
  EXPECT_EQ(tokens("zh", "𠀀x"), "𠀀x");
  EXPECT_EQ(tokens("zh", "a\u200bb"), "a \u200b b");
  EXPECT_EQ(tokens("zh", "a\u2a6db"), "a \u2a6d b");
  EXPECT_EQ(tokens("zh", "a\u2a6eb"), "a\u2a6eb");
}

TEST(Tokenize, CharactersAndNone) {
  EXPECT_EQ(tokens("char", "ab 😀"), "a b 😀");
  EXPECT_EQ(tokens("none", "a,b  c."), "a,b c.");
}

TEST(Tokenize, LanguageOrTextSelectsTheTokenizer) {
  EXPECT_EQ(tokenizer_of_language("zh"), BleuTokenizer::zh);
  EXPECT_EQ(tokenizer_of_language("zh-TW"), BleuTokenizer::zh);
  for (const char* code : {"ja", "ko", "th", "lo", "km", "my"})
    EXPECT_EQ(tokenizer_of_language(code), BleuTokenizer::chars) << code;
  for (const char* code : {"en", "de", "", "pt-BR", "zu"})
    EXPECT_EQ(tokenizer_of_language(code), BleuTokenizer::mteval13) << code;
  const auto of = [](std::string line) { return tokenizer_of_text(std::vector{std::move(line)}); };
  EXPECT_EQ(of("我用Python写代码。"), BleuTokenizer::mteval13) << "six of eleven letters are Latin";
  EXPECT_EQ(of("我是一个学生。OK"), BleuTokenizer::zh);
  EXPECT_EQ(of("私は学生です。"), BleuTokenizer::chars);
  EXPECT_EQ(of("ฉันรักประเทศไทย"), BleuTokenizer::chars);
  EXPECT_EQ(of("저는 학생입니다."), BleuTokenizer::mteval13) << "Korean has blanks";
  EXPECT_EQ(of(""), BleuTokenizer::mteval13);
}

TEST(Tokenize, UnknownNamesAreUsageErrors) {
  try {
    bleu_tokenizer("mecab");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::usage);
  }
  EXPECT_EQ(name_of(BleuTokenizer::mteval13), "13a");
}

TEST(Tokenize, Tercom) {
  EXPECT_EQ(ter_tokens({}, "It's DONE."), "it's done.");
  EXPECT_EQ(ter_tokens({.case_sensitive = true}, "It's DONE."), "It's DONE.");
  EXPECT_EQ(ter_tokens({.normalized = true}, "It's 3-4 &lt;b&gt;, done."),
            "it 's 3 - 4 < b > , done .");
  EXPECT_EQ(ter_tokens({.no_punct = true}, "(Yes), \"no\"; why-not?"), "yes no why-not");
  EXPECT_EQ(ter_tokens({.normalized = true, .asian_support = true}, "你好。x"), "你 好 。 x");
  EXPECT_EQ(ter_tokens({.no_punct = true, .asian_support = true}, "你好。！x"), "你好x");
}

}  // namespace
}  // namespace fovea
