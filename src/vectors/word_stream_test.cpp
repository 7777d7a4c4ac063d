#include "vectors/word_stream.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "temporary.h"

namespace fovea {
namespace {

using Strings = std::vector<std::string>;

struct WordStreamTest : testing::Test {
  TemporaryFolder folder;

  std::string file(const std::string& name, std::string_view text) {
    write_atomically(folder / name, text);
    return folder / name;
  }
};

std::vector<int32_t> sentence(const WordStream& text, int64_t i) {
  return {text.sentence(i).begin(), text.sentence(i).end()};
}

TEST_F(WordStreamTest, SortsWordsByFrequencyAndRemovesRareOnes) {
  const auto text =
      read_words({file("a", "b a c\n\nrare\na  b\ta\r\n"), file("b", "c b a")}, {.min_count = 2});
  EXPECT_EQ(text.words, (Strings{"a", "b", "c"}));
  EXPECT_EQ(text.counts, (std::vector<int64_t>{4, 3, 2}));
  ASSERT_EQ(text.sentences(), 3);  // an empty line and one of rare words are removed
  EXPECT_EQ(sentence(text, 0), (std::vector{1, 0, 2}));
  EXPECT_EQ(sentence(text, 1), (std::vector{0, 1, 0}));
  EXPECT_EQ(sentence(text, 2), (std::vector{2, 1, 0}));
  EXPECT_EQ(text.lines, 5);
  EXPECT_EQ(text.rare, 1);
  EXPECT_EQ(text.summary(), "9 words, 3 different, in 5 lines; 1 too rare");
}

TEST_F(WordStreamTest, EqualCountsAreInByteOrder) {
  EXPECT_EQ(read_words({file("a", "d b \u00E4 a c")}, {.min_count = 1}).words,
            (Strings{"a", "b", "c", "d", "\u00E4"}));
}

TEST_F(WordStreamTest, SkipsBadLinesAndCountsThem) {
  const auto text = read_words({file("a", "a a\n\xFF b b\na\n")}, {.min_count = 1});
  EXPECT_EQ(text.words, Strings{"a"});
  EXPECT_EQ(text.bad_utf8, 1);
  EXPECT_NE(text.summary().find("skipped 1 lines that are not UTF-8"), std::string::npos);
}

TEST_F(WordStreamTest, SplitsLongLinesIntoSentences) {
  std::string line;
  for (int i = 0; i < 2500; ++i) line += "a ";
  const auto text = read_words({file("a", line)}, {.min_count = 1});
  ASSERT_EQ(text.sentences(), 3);
  EXPECT_EQ(text.sentence(0).size(), 1000u);
  EXPECT_EQ(text.sentence(2).size(), 500u);
}

TEST_F(WordStreamTest, PreparesLinesAndSplitsThemWithAVocabulary) {
  const Vocabulary letters =
      Vocabulary::from_entries(Segmentation::characters, {{"a", 1}, {"b", 1}});
  WordStreamOptions options;
  options.min_count = 1;
  options.vocabulary = &letters;
  options.prepare = [](std::string_view line) { return std::string(line) + "a"; };
  const auto text = read_words({file("a", "abx")}, options);
  EXPECT_EQ(text.words, (Strings{"a", "b"}));
  EXPECT_EQ(sentence(text, 0), (std::vector{0, 1, 0}));
  EXPECT_EQ(text.rare, 1);  // x is unknown
}

TEST_F(WordStreamTest, RefusesTextWithoutWords) {
  const auto message =
      message_of(ExitCode::data, [&] { read_words({file("a", "a b\n")}, {.min_count = 2}); });
  EXPECT_NE(message.find("lower `min_count`"), std::string::npos) << message;
  message_of(ExitCode::data, [&] { read_words({file("e", "")}); });
  message_of(ExitCode::files, [&] { read_words({folder / "none"}); });
}

}  // namespace
}  // namespace fovea
