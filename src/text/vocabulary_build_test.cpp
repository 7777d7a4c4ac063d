#include "text/vocabulary_build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "text_samples.h"

namespace fovea {
namespace {

using samples::Folder;

TEST(VocabularyBuild, CountsWords) {
  const Folder folder;
  const std::string one = folder.write("1", "b a a\nc <s> <unk> a\n");
  const std::string two = folder.write("2", "c b\n\xFF bad line\n");
  const Vocabulary v = build_word_vocabulary({one, two});
  ASSERT_EQ(v.size(), 7);
  EXPECT_EQ(v.pieces(std::vector<int32_t>{4, 5, 6}), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(v.count(4), 3);
  EXPECT_EQ(build_word_vocabulary({one, two}, {.min_count = 3}).size(), 5);
  EXPECT_EQ(build_word_vocabulary({one, two}, {.max_size = 5}).size(), 5);
  message_of(ExitCode::data, [&] { build_word_vocabulary({one}, {.min_count = 100}); });
  message_of(ExitCode::usage, [&] { build_word_vocabulary({one}, {.max_size = 4}); });
  message_of(ExitCode::files, [&] { build_word_vocabulary({folder / "none"}); });
}

TEST(VocabularyBuild, CountsCharacters) {
  const Folder folder;
  const Vocabulary v = build_character_vocabulary({folder.write("1", "a\u00E9 e\u0301b\n")});
  EXPECT_EQ(v.id("\u00E9"), 4);  // counted twice: composed and decomposed forms are equal
  EXPECT_EQ(v.size(), 8);
  EXPECT_EQ(v.decode(v.encode(" a  b\u00E9 ")), "a b\u00E9");
}

TEST(VocabularyBuild, OmitsOverlongWords) {
  const Folder folder;
  const std::string text = "a " + std::string(5000, 'x') + "\n";
  EXPECT_EQ(build_word_vocabulary({folder.write("1", text)}).size(), 5);
}

TEST(VocabularyBuild, SentencePieceIsDeterministic) {
  const Folder folder;
  const std::string path = folder.write("text", samples::corpus(2000));
  for (const auto model : {SubwordModel::unigram, SubwordModel::bpe}) {
    SentencePieceOptions options;
    options.model = model;
    options.size = 200;
    options.byte_fallback = false;
    const Vocabulary v = train_sentencepiece({path}, options);
    EXPECT_EQ(v.fingerprint(), train_sentencepiece({path}, options).fingerprint());
    EXPECT_LE(v.size(), 200);
    EXPECT_GE(v.size(), 100);
    EXPECT_EQ(v.name(kEos), "</s>");
    options.max_lines = 500;
    const Vocabulary sampled = train_sentencepiece({path}, options);
    EXPECT_EQ(sampled.fingerprint(), train_sentencepiece({path}, options).fingerprint());
    EXPECT_NE(sampled.fingerprint(), v.fingerprint());
  }
}

TEST(VocabularyBuild, SentencePieceReportsErrors) {
  const Folder folder;
  SentencePieceOptions options;
  options.size = 10;
  const std::string text = folder.write("text", samples::corpus(100));
  const std::string error =
      message_of(ExitCode::data, [&] { train_sentencepiece({text}, options); });
  EXPECT_NE(error.find("could not learn 10 pieces from 100 lines"), error.npos) << error;
  message_of(ExitCode::data,
             [&] { train_sentencepiece({folder.write("none", "\n \n")}, options); });
  options.size = 8000;  // more than the text has
  EXPECT_LT(train_sentencepiece({text}, options).size(), 8000);
}

TEST(VocabularyBuild, SentencePieceHasTheRarestCharacter) {
  const Folder folder;
  const std::string text = folder.write("text", samples::corpus(2000) + "\u00C4 4\n");
  SentencePieceOptions options;
  options.size = 200;
  options.byte_fallback = false;
  const Vocabulary v = train_sentencepiece({text}, options);
  for (const char* rare : {"\u00C4", "4"}) {
    const auto ids = v.encode(rare);
    EXPECT_EQ(std::count(ids.begin(), ids.end(), kUnk), 0) << rare;
  }
}

// NFKC would make 112 of 1½, 342 of 3×4² and 5 of ⑤.
TEST(VocabularyBuild, SentencePieceKeepsNumbersAndSymbols) {
  const Folder folder;
  const std::string text = folder.write("text", samples::corpus(2000));
  for (const auto model : {SubwordModel::unigram, SubwordModel::bpe}) {
    SentencePieceOptions options;
    options.model = model;
    options.size = 400;
    const Vocabulary v = train_sentencepiece({text}, options);
    for (const char* line :
         {"1\u00BD", "3\u00D74\u00B2", "\u22125\u00B0C", "5 \u00B5m", "\u2464 \uFF11\uFF12",
          "\u0141ukasz \U0001F600", "\u2026 \uFB01", "\u6211\u662F"})
      EXPECT_EQ(v.decode(v.encode(line)), line);
    EXPECT_EQ(v.encode("a\u00A0b\u3000c\u2009d"), v.encode("a b c d"));
    EXPECT_EQ(v.words_in("a\u00A0b c").back(), 2);  // only ASCII blanks separate words
  }
}

TEST(VocabularyBuild, Multi30k) {
  const char* data = std::getenv("FOVEA_DATA");
  const std::string folder = std::string(data ? data : "") + "/multi30k/bpe10k/en-de/";
  if (!data || !std::filesystem::exists(folder + "train.en"))
    GTEST_SKIP() << "FOVEA_DATA does not name a folder with multi30k/bpe10k/en-de";
  const Vocabulary v = build_piece_vocabulary({folder + "train.en", folder + "train.de"});
  EXPECT_EQ(v.size(), 9712);
  for (const char* name : {"train.en", "train.de"})
    for (const std::string& line : samples::lines_of(samples::slurp(folder + name))) {
      const auto ids = v.encode(line);
      ASSERT_EQ(std::count(ids.begin(), ids.end(), kUnk), 0);
      ASSERT_EQ(v.decode(ids), v.normalise(line));
      ASSERT_EQ(v.decode(ids).find("@@ "), std::string::npos);
    }
}

}  // namespace
}  // namespace fovea
