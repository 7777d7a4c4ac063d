#include "vectors/word_vectors.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "base/files.h"
#include "temporary.h"

namespace fovea {
namespace {

using std::string_literals::operator""s;

std::string bytes_of(std::initializer_list<float> values) {
  std::string bytes(values.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

std::vector<float> vector_of(const WordVectors& v, std::string_view word) {
  const int64_t i = v.find(word);
  if (i < 0) return {};
  return {v.vector(i).begin(), v.vector(i).end()};
}

TEST(WordVectors, ReadsWord2vecAndFastText) {
  // word2vec.c and fastText end lines with a blank.
  const auto v = WordVectors::parse("2 3\n</s> 0.5 -1 2e-3 \nHaus +1 .25 0 \n", "a.vec");
  EXPECT_EQ(v.words(), 2);
  EXPECT_EQ(v.size(), 3);
  EXPECT_EQ(v.word(0), "</s>");
  EXPECT_EQ(vector_of(v, "</s>"), (std::vector{0.5f, -1.0f, 2e-3f}));
  EXPECT_EQ(vector_of(v, "Haus"), (std::vector{1.0f, 0.25f, 0.0f}));
  EXPECT_EQ(v.find("haus"), -1);
}

TEST(WordVectors, ReadsGloveWithBlanksInWords) {
  const auto v = WordVectors::parse("the 0.1 0.2\r\n. . . 3 4\n\xC2\xA0 5 6", "glove.txt");
  EXPECT_EQ(v.words(), 3);
  EXPECT_EQ(v.size(), 2);
  EXPECT_EQ(vector_of(v, ". . ."), (std::vector{3.0f, 4.0f}));
  EXPECT_EQ(vector_of(v, "\xC2\xA0"),
            (std::vector{5.0f, 6.0f}));  // U+00A0 does not separate fields
}

TEST(WordVectors, ReadsBinary) {
  const std::string first = bytes_of({1.5f, -2}), second = bytes_of({0x1p-149f, 3e38f});
  for (const std::string& end : {"\n"s, ""s}) {  // word2vec.c ends words with LF, others do not
    const auto v =
        WordVectors::parse("2 2\n</s> " + first + end + "Stra\u00DFe " + second + end, "a.bin");
    EXPECT_EQ(v.words(), 2);
    EXPECT_EQ(vector_of(v, "</s>"), (std::vector{1.5f, -2.0f}));
    EXPECT_EQ(vector_of(v, "Stra\u00DFe"), (std::vector{0x1p-149f, 3e38f}));
  }
}

TEST(WordVectors, ReadsWhatItWrites) {
  WordVectors v(3);
  v.add("eins", std::vector{0.1f, -1e-30f, 3.4028235e38f});
  v.add("\u4E8C", std::vector{1.0f / 3, 0x1p-149f, -0.0f});
  const TemporaryFolder folder;
  for (const auto format : {VectorFormat::text, VectorFormat::binary}) {
    v.write(folder / "v", format);
    const auto again = WordVectors::read(folder / "v");
    ASSERT_EQ(again.words(), 2);
    for (int64_t i = 0; i < 2; ++i) {
      EXPECT_EQ(again.word(i), v.word(i));
      EXPECT_EQ(std::memcmp(again.vector(i).data(), v.vector(i).data(), 12), 0);
    }
  }
  EXPECT_EQ(read_file(folder / "v").substr(0, 9), "2 3\neins ");
  v.add("two words", std::vector{1.0f, 2.0f, 3.0f});
  const auto message =
      message_of(ExitCode::data, [&] { v.write(folder / "w", VectorFormat::text); });
  EXPECT_NE(message.find("two words"), std::string::npos) << message;
  EXPECT_FALSE(std::filesystem::exists(folder / "w"));
}

TEST(WordVectors, FindsEachOfManyWords) {
  WordVectors v(1);
  for (int i = 0; i < 5000; ++i)
    ASSERT_TRUE(v.add("w" + std::to_string(i), std::vector{static_cast<float>(i)}));
  EXPECT_FALSE(v.add("w77", std::vector{0.0f}));
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(v.find("w" + std::to_string(i)), i);
  EXPECT_EQ(v.find("w5000"), -1);
  EXPECT_EQ(v.find(""), -1);
}

TEST(WordVectors, FirstOfEqualWordsCounts) {
  const auto v = WordVectors::parse("3 1\na 1\nb 2\na 3\n", "a.vec");
  EXPECT_EQ(vector_of(v, "a"), std::vector{1.0f});
  EXPECT_EQ(v.words(), 2);
  EXPECT_EQ(v.counts().duplicates, 1);
  EXPECT_EQ(v.counts().summary(), "kept 2 of 3 words: 1 duplicate (first a.vec:4)");
}

TEST(WordVectors, KeepsOnlyWantedWords) {
  VectorReadOptions options;
  options.wanted = [](std::string_view word) { return word == "b"; };
  const auto v = WordVectors::parse("a 1 2\nb 2 3\nc 3 4\n", "a.vec", options);
  EXPECT_EQ(v.words(), 1);
  EXPECT_EQ(v.counts().unwanted, 2);
  EXPECT_EQ(vector_of(v, "b"), (std::vector{2.0f, 3.0f}));
}

TEST(WordVectors, BadUtf8IsRefusedSkippedOrReplaced) {
  const std::string text = "a 1 2\n\xFF 2 3\n";
  const auto message = message_of(ExitCode::data, [&] { WordVectors::parse(text, "a.vec"); });
  EXPECT_NE(message.find("a.vec:2: "), std::string::npos) << message;
  const auto skipped = WordVectors::parse(text, "a.vec", {.bad_utf8 = BadUtf8::skip});
  EXPECT_EQ(skipped.words(), 1);
  EXPECT_EQ(skipped.counts().bad_utf8, 1);
  const auto replaced = WordVectors::parse(text, "a.vec", {.bad_utf8 = BadUtf8::replace});
  EXPECT_EQ(vector_of(replaced, "\uFFFD"), (std::vector{2.0f, 3.0f}));
}

struct BadFile {
  std::string bytes, location, message;
};

TEST(WordVectors, RejectsBadTextWithItsLine) {
  const std::string long_word(WordVectors::kMaxWordBytes + 1, 'a');
  const std::vector<BadFile> cases{
      {"", "v:1", "empty"},
      {"\n", "v:1", "0 fields"},
      {"word\n", "v:1", "1 fields"},
      {"2 2\na 1 2\n", "v:2", "truncated"},
      {"1 2\na 1 2\nb 1 2\n", "v:3", "one more"},
      {"2 2\na 1 2\nb 1\n", "v:3", "'b'"},
      {"2 2\na 1 2\nb 1 2 3\n", "v:3", "more than 2 numbers"},
      {"1 3\n 1 2 3\n", "v:2", "no word"},
      {"a 1 2\nb 1 x\n", "v:2", "'x'"},
      {"a 1 2\nb 1 0x3\n", "v:2", "'0x3'"},
      {"a 1 2\nb 1 2,5\n", "v:2", "'2,5'"},
      {"a 1 2\nb 1 nan\n", "v:2", "not finite"},
      {"a 1 2\nb -inf 2\n", "v:2", "not finite"},
      {"a 1 2\nb 1 1e39\n", "v:2", "too large"},
      {"a 1 2\nb 1 1e999\n", "v:2", "too large"},
      {"a 1 2\n" + long_word + " 1 2\n", "v:2", "65537 bytes"},
      {"a 1 2\n" + std::string(LineReader::kLimit + 10, ' ') + "\n", "v:2", "longer than"},
      {"0 3\n", "v:1", "announces 0 words"},
      {"-1 3\na 1 2 3\n", "v:1", "announces -1 words"},
      {"1 0\na\n", "v:1", "0 numbers"},
      {"1 -3\na\n", "v:1", "-3 numbers"},
      {"1 65537\na\n", "v:1", "65537 numbers"},
      {"1 9223372036854775807\na 1\n", "v:1", "numbers"},
      {"3000000000 300\na 1\n", "v:1", "has only 19 bytes"},
      {"9223372036854775807 65536\na 1\n", "v:1", "bytes"},
      {"99999999999999999999 3\na 1 2 3\n", "v:1", "bytes"},
      {"\xFF\xFE" + "a\0 \0"s, "v:1", "UTF-16"},
  };
  for (const BadFile& bad : cases) {
    const auto message = message_of(ExitCode::data, [&] {
      WordVectors::parse(bad.bytes, "v", {.format = VectorFormat::text});
    });
    EXPECT_NE(message.find(bad.location + ":"), std::string::npos) << message;
    EXPECT_NE(message.find(bad.message), std::string::npos) << bad.message << " in: " << message;
  }
}

TEST(WordVectors, RejectsBadBinaryWithItsOffset) {
  const std::string two = bytes_of({1, 2});
  const std::string bad = bytes_of({1, std::numeric_limits<float>::infinity()});
  const std::vector<BadFile> cases{
      {"", "v:1", "number of words"},
      {"1 2", "v:1", "number of words"},
      {"word 2 3\n", "v:1", "number of words"},
      {"2 2\na " + two + "\n", "v:1", "truncated"},
      {"2 2\na " + two + "\nb " + two.substr(0, 7), "v, byte 15", "truncated"},
      {"2 2\na " + two + "\n" + std::string(20, 'b'), "v, byte 15", "truncated"},
      {"1 2\na " + two + "\nb " + two, "v, byte 14", "bytes follow"},
      {"2 2\na " + two + "\nb " + bad + "\n", "v, byte 21", "inf"},
      {"2 2\na " + two + "\n " + two + "\n", "v, byte 15", "the word is empty"},
      {"2 2\na " + two + "b\nc " + two + "\n", "v, byte 14", "line end"},
      {"2 2\na " + two + "\n\xC0\x80 " + two + "\n", "v, byte 15", "not UTF-8"},
      {"4000000000 1000\na " + two, "v:1", "bytes"},
      {"9223372036854775807 65536\na " + two, "v:1", "bytes"},
      {"1 9223372036854775807\na " + two, "v:1", "numbers"},
      {"1 70000\na " + two, "v:1", "70000 numbers"},
  };
  for (const BadFile& bad_case : cases) {
    const auto message = message_of(ExitCode::data, [&] {
      WordVectors::parse(bad_case.bytes, "v", {.format = VectorFormat::binary});
    });
    EXPECT_NE(message.find(bad_case.location), std::string::npos) << message;
    EXPECT_NE(message.find(bad_case.message), std::string::npos) << message;
  }
}

// A file that is truncated at any byte is an error. The reader never reads past its end.
TEST(WordVectors, RefusesEveryTruncation) {
  WordVectors v(4);
  for (const char* word : {"a", "bb", "\u00FC"}) v.add(word, std::vector{0.5f, 1.0f, -1.5f, 2.0f});
  const TemporaryFolder folder;
  for (const auto format : {VectorFormat::text, VectorFormat::binary}) {
    v.write(folder / "v", format);
    const std::string whole = read_file(folder / "v");
    const size_t last = whole.size() - (format == VectorFormat::text ? 2 : 1);  // "2\n", or LF
    for (size_t n = 0; n < last; ++n)
      EXPECT_THROW(WordVectors::parse(whole.substr(0, n), "v", {.format = format}), Error) << n;
    EXPECT_EQ(WordVectors::parse(whole, "v").words(), 3);
  }
}

TEST(WordVectors, MissingFilesAreFileErrors) {
  message_of(ExitCode::files, [] { WordVectors::read("/no/such/file.vec"); });
  message_of(ExitCode::files, [] { WordVectors::read("/"); });
}

}  // namespace
}  // namespace fovea
