#include "text/sentencepiece_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "effort.h"
#include "text/vocabulary.h"
#include "text_samples.h"
#include "thread_seconds.h"

namespace fovea {
namespace {

// A model file in parts, so that each can be damaged.
struct Parts {
  std::vector<std::string> pieces;
  std::string rest;

  std::string bytes() const {
    std::string all;
    for (const std::string& piece : pieces) all += field(1, piece);
    return all + rest;
  }

  static std::string varint(uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
  }

  static std::string field(int number, const std::string& message) {
    return varint(static_cast<uint64_t>(number) << 3 | 2) + varint(message.size()) + message;
  }

  static std::string piece(const std::string& text, float score, int type) {
    std::string bits(4, '\0');
    std::memcpy(bits.data(), &score, 4);
    return field(1, text) + '\x15' + bits + '\x18' + varint(static_cast<uint64_t>(type));
  }
};

std::string trained() {
  static const std::string bytes = [] {
    const samples::Folder folder;
    samples::small_model(SubwordModel::unigram, false).save(folder / "v.spm");
    return samples::slurp(folder / "v.spm");
  }();
  return bytes;
}

Parts parts() {
  Parts parts;
  std::string bytes = trained();
  const auto stored = check_sentencepiece(bytes, "v.spm").pieces;
  for (const StoredPiece& p : stored)
    parts.pieces.push_back(Parts::piece(std::string(p.text), p.score, static_cast<int>(p.type)));
  const StoredPiece& last = stored.back();
  parts.rest = bytes.substr(last.text.data() + last.text.size() - bytes.data() + 5);
  return parts;
}

std::string error_of(const std::string& bytes) {
  const double begin = thread_seconds();
  const std::string error =
      message_of(ExitCode::model, [&] { Vocabulary::parse_sentencepiece(bytes, "v.spm"); });
  EXPECT_LT(thread_seconds() - begin, time_limit(0.1));
  EXPECT_EQ(error.find("v.spm: "), 0u) << error;
  return error;
}

TEST(SentencePieceModel, PartsMakeTheSameModel) {
  const Vocabulary v = Vocabulary::parse_sentencepiece(parts().bytes(), "v.spm");
  EXPECT_EQ(v.size(), Vocabulary::parse_sentencepiece(trained(), "v.spm").size());
  EXPECT_EQ(v.decode(v.encode("verliko stamu")), "verliko stamu");
}

TEST(SentencePieceModel, RefusesDamagedPieces) {
  struct Case {
    std::string piece, message;
  };
  const Case cases[] = {
      {Parts::piece("", -1, 1), "piece 9 is empty"},
      {Parts::piece(std::string(100'000, 'a'), -1, 1), "piece 9 is longer"},
      {Parts::piece("a\xC3", -1, 1), "piece 9 is not UTF-8"},
      {Parts::piece(std::string("a\0b", 3), -1, 1), "piece 9 contains a NUL"},
      {Parts::piece("q", std::nanf(""), 1), "piece 9 has a score"},
      {Parts::piece("q", -INFINITY, 1), "piece 9 has a score"},
      {Parts::piece("q", 1e30f, 1), "piece 9 has a score"},
      {Parts::piece("q", -1, 0), "unknown type"},
      {Parts::piece("q", -1, 7), "unknown type"},
      {Parts::piece("q", -1, 2), "piece 9 is a control or unknown piece"},
      {Parts::piece("q", -1, 3), "piece 9 is a control or unknown piece"},
      {Parts::piece("q", -1, 6), "has the type byte"},
      {Parts::piece("<0xG1>", -1, 6), "has the type byte"},
      {parts().pieces[8], "occurs twice"},
      {Parts::piece("<s>", -1, 1), "occurs twice"},
      {"\x0A\x7F", "longer than the rest of its message"},
      {"\x0F", "unknown type"},
      {std::string(1, '\0'), "invalid number"},
      {std::string(11, '\xFF'), "more than ten bytes"},
  };
  for (const Case& bad : cases) {
    Parts p = parts();
    p.pieces[9] = bad.piece;
    EXPECT_NE(error_of(p.bytes()).find(bad.message), std::string::npos) << bad.message;
  }
}

TEST(SentencePieceModel, RefusesOtherSpecials) {
  Parts p = parts();
  std::swap(p.pieces[0], p.pieces[3]);
  EXPECT_NE(error_of(p.bytes()).find("train it with pad_id=0"), std::string::npos);
  p = parts();
  p.pieces[1] = Parts::piece("<s>", 0, 1);
  EXPECT_NE(error_of(p.bytes()).find("piece 1"), std::string::npos);
  p.pieces.resize(4);
  error_of(p.bytes());
  p.pieces.clear();
  error_of(p.bytes());
  error_of("");
  error_of("fovea");
  error_of(std::string(1000, '\0'));
}

TEST(SentencePieceModel, RefusesDeepNesting) {
  Parts p = parts();
  for (size_t n = 1; n < 100; ++n) p.pieces.push_back(Parts::piece(std::string(n, '='), 0, 4));
  EXPECT_NE(error_of(p.bytes()).find("begins with more than"), std::string::npos);
}

TEST(SentencePieceModel, RefusesDamagedCharacterMaps) {
  const std::string root(1024, '\0');
  const auto map = [](uint32_t size, const std::string& trie, const std::string& rest) {
    std::string bytes(4, '\0');
    std::memcpy(bytes.data(), &size, 4);
    return bytes + trie + rest;
  };
  const std::string end(1, '\0');
  const std::string bad[] = {"x",
                             map(1024, root, ""),
                             map(1000, root, end),
                             map(2048, root, end),
                             map(0, root, end),
                             map(1024, root, "x"),
                             map(1024, root, end),                              // a cycle
                             map(1024, "\xFF\xFF\xFF" + root.substr(3), end)};  // out of bounds
  for (const std::string& bytes : bad)
    message_of(ExitCode::model, [&] { check_character_map(bytes, "v"); });
  check_character_map("", "v");
}

// For any file, loading either throws an error or returns a usable vocabulary.
void expect_error_or_usable(const std::string& bytes) {
  try {
    const Vocabulary v = Vocabulary::parse_sentencepiece(bytes, "v.spm");
    Random random(9);
    for (int i = 0; i < 5; ++i) v.normalise(samples::wild(random));
    v.decode(v.encode("verliko stamu \uFB01 \u00BD e\u0301 <s>"));
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::model);
  }
}

TEST(SentencePieceModel, SurvivesTruncation) {
  const std::string bytes = trained();
  for (size_t size = 0; size < 400; ++size) expect_error_or_usable(bytes.substr(0, size));
  for (size_t i = 0; i < 200; ++i) expect_error_or_usable(bytes.substr(0, bytes.size() * i / 200));
  for (size_t i = 1; i < 100; ++i) expect_error_or_usable(bytes.substr(0, bytes.size() - i));
}

TEST(SentencePieceModel, SurvivesFlippedBits) {
  Random random(10);
  // The second one has a normalisation table.
  const std::string good[] = {trained(),
                              samples::slurp(FOVEA_SOURCE "/models/gallery/dot/vocab.spm")};
  for (int64_t i = 0; i < repeats(600); ++i) {
    std::string bytes = good[i / 2 % 2];
    const size_t span = i % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 4000);
    for (uint64_t n = 1 + random.below(3); n > 0; --n)
      bytes[random.below(span)] ^= static_cast<char>(1u << random.below(8));
    expect_error_or_usable(bytes);
  }
}

}  // namespace
}  // namespace fovea
