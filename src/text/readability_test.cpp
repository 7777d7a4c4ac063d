#include "text/readability.h"

#include <gtest/gtest.h>

#include "text/vocabulary_build.h"
#include "text_samples.h"

namespace fovea {
namespace {

using Kind = ReadingWarning::Kind;

Vocabulary characters_of(std::string_view letters) {
  std::vector<Vocabulary::Entry> entries;
  for (const char c : letters) entries.push_back({std::string(1, c), 1});
  return Vocabulary::from_entries(Segmentation::characters, entries);
}

std::vector<ReadingWarning> warnings(const Vocabulary& vocabulary, const std::string& text) {
  return coverage_warnings(vocabulary, std::vector{text});
}

TEST(VocabularyCoverage, CountsCharactersWithoutBlanks) {
  const VocabularyCoverage found = characters_of("abc").coverage("ab c学 😀学 ");
  EXPECT_EQ(found.units, 6);
  EXPECT_EQ(found.unknown, 3);
  EXPECT_EQ(found.spelt, 0);
  EXPECT_EQ(found.examples, (std::vector<std::string>{"学", "😀"}));
}

TEST(VocabularyCoverage, CountsWordsOfWholeWords) {
  const auto words = Vocabulary::from_entries(Segmentation::words, {{"the", 2}, {"dog", 1}});
  EXPECT_TRUE(words.has_whole_words());
  const VocabularyCoverage found = words.coverage("the big dog");
  EXPECT_EQ(found.units, 3);
  EXPECT_EQ(found.unknown, 1);
  EXPECT_EQ(found.examples, std::vector<std::string>{"big"});
  EXPECT_EQ(describe(warnings(words, "the big dog").front(), words),
            "1 of 3 words is unknown to this model: big");
}

TEST(VocabularyCoverage, AddsUp) {
  const Vocabulary vocabulary = characters_of("abc");
  VocabularyCoverage all = vocabulary.coverage("xyz");
  all.add(vocabulary.coverage("azvwuts"));
  EXPECT_EQ(all.units, 10);
  EXPECT_EQ(all.unknown, 9);
  EXPECT_EQ(all.examples, (std::vector<std::string>{"x", "y", "z", "v", "w"}));  // five at most
}

// A model can read a few characters byte by byte, but not a whole text.
TEST(VocabularyCoverage, SeparatesBytesFromUnknown) {
  const samples::Folder folder;
  const std::string path = folder.write("text", samples::corpus(500));
  for (const bool bytes : {false, true}) {
    const Vocabulary vocabulary =
        train_sentencepiece({path}, {.size = bytes ? 400 : 120, .byte_fallback = bytes});
    const VocabularyCoverage found = vocabulary.coverage("a 学生 a");
    EXPECT_EQ(found.units, 4) << bytes;
    EXPECT_EQ(found.unknown, bytes ? 0 : 2);
    EXPECT_EQ(found.spelt, bytes ? 2 : 0);
    EXPECT_EQ(found.examples, (std::vector<std::string>{"学", "生"})) << bytes;
    EXPECT_EQ(warnings(vocabulary, "a small 学").empty(), bytes);
    EXPECT_EQ(warnings(vocabulary, "我是一个学生").front().kind, Kind::unreadable) << bytes;
    EXPECT_EQ(vocabulary.coverage("我是一个学生").units, 6) << bytes;
  }
}

TEST(Readability, WarnsByShare) {
  const Vocabulary vocabulary = characters_of("abc");
  EXPECT_TRUE(warnings(vocabulary, "").empty());
  EXPECT_TRUE(warnings(vocabulary, "abc cab").empty());
  EXPECT_EQ(warnings(vocabulary, "abc cax").front().kind, Kind::unknown_characters);
  EXPECT_EQ(warnings(vocabulary, "abxy").front().kind, Kind::unknown_characters);
  EXPECT_EQ(warnings(vocabulary, "axyz").front().kind, Kind::unreadable);
  EXPECT_EQ(describe(warnings(vocabulary, "我是一个学生").front(), vocabulary),
            "6 of 6 characters are unknown to this model: 我 是 一 个 学");
}

TEST(Readability, ListsWhatATranslationLacks) {
  const Vocabulary vocabulary = characters_of("abcdefgh");
  const auto lost = [&](std::vector<std::string> sentences, std::vector<std::string> translations) {
    const auto found = copy_warnings(vocabulary, sentences, translations);
    return found.empty() ? std::vector<std::string>() : found.front().lost;
  };
  using Units = std::vector<std::string>;
  EXPECT_EQ(lost({"abc € abc ☃€"}, {"x"}), (Units{"€", "☃"}));
  EXPECT_EQ(lost({"abc € abc ☃€"}, {"x€"}), Units{"☃"});
  EXPECT_EQ(lost({"abc € abc ☃€"}, {"☃ €"}), Units());
  EXPECT_EQ(lost({"abc €", "abc €"}, {"€", "y"}), Units{"€"});  // each sentence has its translation
  EXPECT_EQ(lost({"我是一个学"}, {"x"}), Units()) << "unreadable text is reported as such";
  const Vocabulary greek = Vocabulary::from_entries(
      Segmentation::characters, {{"a", 1}, {"b", 1}, {"α", 1}, {"β", 1}, {"▁", 1}});
  const std::vector<std::string> mixed{"ab αβ ab"}, other{"ab α"}, only{"αβ αβ"};
  EXPECT_EQ(copy_warnings(greek, mixed, other).front().lost, Units{"β"}) << "another script";
  EXPECT_TRUE(copy_warnings(greek, only, other).empty()) << "the script of the text";
  EXPECT_EQ(lost({"abc \uFE0F\u200D"}, {"x"}), Units()) << "not visible";
  const std::vector<std::string> text{"abc € abc ☃€"}, none{""};
  const ReadingWarning warning = copy_warnings(vocabulary, text, none).front();
  EXPECT_STREQ(warning.code(), "not_copied");
  EXPECT_EQ(describe_lost(warning, vocabulary),
            "the translation lacks 2 characters of the text: € ☃");
  const auto words = Vocabulary::from_entries(Segmentation::words, {{"the", 2}, {"dog", 1}});
  const std::vector<std::string> sentence{"the big dog"};
  EXPECT_EQ(describe_lost(copy_warnings(words, sentence, none).front(), words),
            "the translation lacks 1 word of the text: big");
}

TEST(Readability, WarnsOfOtherLanguages) {
  const std::string german = "Das ist ein kleiner Hund, und er läuft durch den Schnee.";
  const auto found = language_warnings(german, "en");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_STREQ(found.front().code(), "other_language");
  EXPECT_EQ(describe_language(found.front().detected, "en"),
            "the text looks like German, and the model reads English");
  EXPECT_TRUE(language_warnings(german, "de").empty());
  EXPECT_TRUE(language_warnings(german, "").empty());
  EXPECT_TRUE(language_warnings(german, "tlh").empty());  // nothing is known about Klingon
  EXPECT_TRUE(language_warnings("Tom.", "de").empty());
  EXPECT_TRUE(language_warnings("這是我們的書", "zh-Hans").empty());
  EXPECT_EQ(language_warnings("我是一个学生。", "en").size(), 1u);
  std::string repeated;
  for (int i = 0; i < 500; ++i) repeated += "A dog.\n";
  EXPECT_TRUE(language_warnings(repeated, "en").empty()) << "repetition is no evidence";
}

TEST(Readability, IgnoresForeignNames) {
  for (const char* text :
       {"I know Łukasz.", "I know Łukasz 😀.", "Ask Þórðar, please.", "I know Jürgen Müller."})
    EXPECT_TRUE(language_warnings(text, "en").empty()) << text;
  EXPECT_EQ(language_warnings("Die Straße ist naß.", "en").size(), 1u);
  EXPECT_EQ(language_warnings("Мы живём в Москве.", "en").size(), 1u);
}

}  // namespace
}  // namespace fovea
