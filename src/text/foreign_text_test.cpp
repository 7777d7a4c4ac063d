#include "text/foreign_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/check.h"
#include "base/utf8.h"
#include "effort.h"
#include "support/growth.h"
#include "text_samples.h"

namespace fovea {
namespace {

using Pair = std::pair<std::string, std::string>;

// The merges of a word as subword-nmt applies them: all occurrences of the first pair of the list.
std::vector<std::string> merged_in_rounds(std::vector<std::string> word,
                                          const std::map<Pair, size_t>& ranks) {
  while (true) {
    std::optional<std::pair<size_t, Pair>> best;
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = ranks.find({word[i], word[i + 1]});
      if (found != ranks.end() && (!best || found->second < best->first))
        best = {found->second, found->first};
    }
    if (!best) return word;
    std::vector<std::string> next;
    for (size_t i = 0; i < word.size(); ++i) {
      const bool match = i + 1 < word.size() && Pair{word[i], word[i + 1]} == best->second;
      next.push_back(match ? word[i] + word[i + 1] : word[i]);
      if (match) ++i;
    }
    word = std::move(next);
  }
}

// The merges of a word as Hugging Face applies them: the leftmost occurrence of the first pair.
std::vector<std::string> merged_singly(std::vector<std::string> word,
                                       const std::map<Pair, size_t>& ranks) {
  while (true) {
    size_t best = ranks.size(), at = 0;
    for (size_t i = 0; i + 1 < word.size(); ++i) {
      const auto found = ranks.find({word[i], word[i + 1]});
      if (found != ranks.end() && found->second < best) best = found->second, at = i;
    }
    if (best == ranks.size()) return word;
    word[at] += word[at + 1];
    word.erase(word.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(PairMerges, AgreeWithTheDefinition) {
  Random random(3);
  for (int64_t trial = 0; trial < repeats(300); ++trial) {
    std::vector<std::string> symbols{"a", "b", "c", "ä"};
    std::vector<PairMerges::Merge> merges;
    std::map<Pair, size_t> ranks;
    for (size_t i = 0; i < 1 + random.below(12); ++i) {
      const std::string left = symbols[random.below(symbols.size())];
      const std::string right = symbols[random.below(symbols.size())];
      if (!ranks.emplace(Pair{left, right}, merges.size()).second) continue;
      merges.push_back({left, right});
      if (std::ranges::count(symbols, left + right) == 0) symbols.push_back(left + right);
    }
    for (size_t i = merges.size(); i > 1;
         --i) {  // also merges that cannot be learned in this order
      const size_t other = random.below(i);
      std::swap(merges[i - 1], merges[other]);
      std::swap(ranks[{merges[i - 1].left, merges[i - 1].right}],
                ranks[{merges[other].left, merges[other].right}]);
    }
    const PairMerges rounds(merges, MergeOrder::rounds), queue(merges, MergeOrder::queue);
    std::vector<std::string> word;
    std::string text;
    std::vector<size_t> ends;
    for (size_t n = 1 + random.below(20); n > 0; --n) {
      word.push_back(std::string(1, "abcd"[random.below(4)]));
      text += word.back();
      ends.push_back(text.size());
    }
    const auto cut = [&](const std::vector<size_t>& at) {
      std::vector<std::string> parts;
      size_t begin = 0;
      for (const size_t end : at) parts.push_back(text.substr(begin, end - begin)), begin = end;
      return parts;
    };
    ASSERT_EQ(cut(rounds.apply(text, ends)), merged_in_rounds(word, ranks)) << text;
    ASSERT_EQ(cut(queue.apply(text, ends)), merged_singly(word, ranks)) << text;
  }
}

TEST(PairMerges, TakeLinearTime) {
  const PairMerges merges({{"a", "a"}, {"aa", "aa"}, {"a", "b"}, {"aaaa", "aaaa"}},
                          MergeOrder::rounds);
  const auto read = [&](const std::string& text) {
    std::vector<size_t> ends(text.size());
    for (size_t i = 0; i < ends.size(); ++i) ends[i] = i + 1;
    merges.apply(text, std::move(ends));
  };
  testing::expect_linear(read, testing::Pattern{"", "a"});
  testing::expect_linear(read, testing::Pattern{"", "ab", "b"});
}

PieceOrder order_of(const std::vector<std::string>& names,
                    const std::vector<std::string>& controls = {}) {
  return order_pieces(names, {}, controls, "names");
}

TEST(ForeignText, CutsLikeSubwordNmt) {
  const std::string merges = "l o\nlo w</w>\ne r</w>\nx \u00e4\n";
  const PieceOrder order =
      order_of({"lo@@", "low", "w@@", "er", "er@@", "x", "@@", "__de__"}, {"__de__"});
  const Vocabulary v = import_subword_nmt("#version: 0.2\n" + merges, order, "codes");
  EXPECT_EQ(v.cut(), Segmentation::subwords);
  EXPECT_EQ(v.pieces(v.encode("  low lower  x ")),
            (std::vector<std::string>{"low", "lo@@", "w@@", "er", "x"}));
  EXPECT_EQ(v.decode(v.encode("low lower x")), "low lower x");
  EXPECT_EQ(v.words_in("low lower x"), (std::vector<int>{0, 1, 1, 1, 2, 3}));
  // No normalisation; other spaces split the pieces, because the dictionary reader splits there.
  EXPECT_EQ(v.spelt("e\u0301"), (std::vector<std::string>{"e@@", "\u0301"}));
  EXPECT_EQ(v.spelt("low\u00A0x"), (std::vector<std::string>{"lo@@", "w@@", "@@", "x"}));
  EXPECT_EQ(v.pieces(v.encode("__de__ <s>")).front(), "<unk>");
  const std::vector<int32_t> ids{v.id("__de__"), v.id("low"), v.id("lo@@"), v.id("er"), kEos};
  EXPECT_EQ(v.decode(ids), "low loer");
  EXPECT_EQ(v.text_words_of(ids), (std::vector<int>{0, 0, 1, 1, 2}));
  EXPECT_EQ(v.normalise("lower q"), "lower q");
  EXPECT_EQ(v.coverage("low q").unknown, 1);
  // In version 0.1 the end of a word is a symbol.
  const Vocabulary old = import_subword_nmt("l o\nlo w\ne r\nlow </w>\n", order, "codes");
  EXPECT_EQ(old.spelt("low lowe"), (std::vector<std::string>{"low", "low@@", "e"}));
}

TEST(ForeignText, SavesAndLoads) {
  const PieceOrder order = order_of({"lo@@", "w", "a\tb", "##", "x\r"});
  const samples::Folder folder;
  for (const char* version : {"", "#version: 0.2\n"}) {
    const Vocabulary v = import_subword_nmt(version + std::string("l o\n"), order, "codes");
    v.save(folder / "vocab.txt");
    const Vocabulary loaded = Vocabulary::load(folder / "vocab.txt");
    EXPECT_EQ(loaded.fingerprint(), v.fingerprint());
    EXPECT_EQ(loaded.size(), 9);
    EXPECT_EQ(loaded.name(6), "<row-2>") << "the file cannot hold a tab in a piece";
    EXPECT_EQ(loaded.spelt("low a\u0308"), v.spelt("low a\u0308"));
    EXPECT_EQ(loaded.extension(), std::string(".txt"));
  }
  const Vocabulary cut = import_pieces(order, "dict.txt");
  EXPECT_EQ(cut.cut(), Segmentation::pieces);
  EXPECT_EQ(cut.decode(cut.encode(" lo@@\u3000w ")), "low");
}

TEST(ForeignText, RefusesDamagedFiles) {
  const auto error_of = [](const std::string& bytes) {
    return message_of(ExitCode::model, [&] { Vocabulary::parse_text(bytes, "v.txt"); });
  };
  const std::string head = "fovea-vocabulary\t2\tsubword-nmt\t0.2\t";
  const std::string good = head + "2\t1\na\ttext\nb\tcontrol\na\tb\n";
  EXPECT_EQ(Vocabulary::parse_text(good, "v.txt").size(), 6);
  EXPECT_NE(error_of("fovea-vocabulary\t2\t").find("v.txt:1: the line has another number of tabs"),
            std::string::npos);
  EXPECT_NE(error_of("fovea-vocabulary\t2\tunigram\t-\t1\t0\na\ttext\n")
                .find("v.txt:1: expected 'pieces'"),
            std::string::npos);
  EXPECT_NE(error_of(head + "1000000000\t0\n").find("v.txt:1: the first line has no valid"),
            std::string::npos);
  EXPECT_NE(error_of(head + "-1\t0\n").find("v.txt:1:"), std::string::npos);
  EXPECT_NE(error_of(head + "0\t0\n").find("no pieces"), std::string::npos);
  EXPECT_NE(error_of(head + "2\t0\na\ttext\n").find("v.txt:3: the file ends"), std::string::npos);
  EXPECT_NE(error_of(head + "2\t0\na\ttext\na\ttext\n").find("v.txt:3: the piece occurs twice"),
            std::string::npos);
  EXPECT_NE(error_of(head + "1\t0\n<s>\ttext\n").find("v.txt:2: the piece occurs twice"),
            std::string::npos);
  EXPECT_NE(error_of(head + "1\t0\n\ttext\n").find("is empty"), std::string::npos);
  EXPECT_NE(error_of(head + "1\t0\na\tbyte\n").find("its role"), std::string::npos);
  EXPECT_NE(error_of(head + "1\t0\na\xFF\ttext\n").find("not UTF-8"), std::string::npos);
  EXPECT_NE(error_of(head + "1\t1\na\ttext\n\tb\n").find("side of the merge"), std::string::npos);
  EXPECT_NE(error_of(good + "x\ty\n").find("more lines"), std::string::npos);
  for (size_t size = 0; size < good.size() - 1; ++size) error_of(good.substr(0, size));
}

TEST(ForeignText, RefusesDamagedCodes) {
  const auto error_of = [](const std::string& bytes) {
    return message_of(ExitCode::model, [&] { read_codes(bytes, "codes"); });
  };
  EXPECT_NE(error_of("#version: 0.3\na b\n").find("codes:1: version '0.3'"), std::string::npos);
  EXPECT_NE(error_of("#version:\na b\n").find("codes:1: version ''"), std::string::npos);
  EXPECT_NE(error_of("a b\na b c\n").find("codes:2: 'a b c'"), std::string::npos);
  EXPECT_NE(error_of("a b\n\nc d\n").find("codes:2: ''"), std::string::npos);
  EXPECT_NE(error_of("a \xFF\n").find("codes:1:"), std::string::npos);
  EXPECT_NE(error_of("").find("no merges"), std::string::npos);
  EXPECT_TRUE(read_codes("#version: 0.1.0\r\na b \r\n", "codes").split_end);
}

TEST(ForeignNames, ReadsFairseqDictionaries) {
  const std::string dict =
      "the 100\na b 7\nx@@ 3\r\n</s> 2 #fairseq:overwrite\nthe 1 #fairseq:overwrite\n";
  EXPECT_EQ(
      fairseq_names(dict, "dict.txt"),
      (std::vector<std::string>{"<s>", "<pad>", "</s>", "<unk>", "", "a b", "x@@", "</s>", "the"}));
  const auto error_of = [](const std::string& bytes) {
    return message_of(ExitCode::model, [&] { fairseq_names(bytes, "dict.txt"); });
  };
  EXPECT_NE(error_of("a 1\na 2\n").find("dict.txt:2: 'a 2' occurs before"), std::string::npos);
  EXPECT_NE(error_of("<s> 1\n").find("occurs before"), std::string::npos);
  EXPECT_NE(error_of("a\n").find("dict.txt:1: 'a' is not a symbol"), std::string::npos);
  EXPECT_NE(error_of("a b\n").find("is not a symbol"), std::string::npos);
  EXPECT_NE(error_of("a 1\n\nb 1\n").find("dict.txt:2:"), std::string::npos);
  EXPECT_NE(error_of("a\xC3 1\n").find("byte 1 is not UTF-8"), std::string::npos);
}

TEST(ForeignNames, ReadsJson) {
  EXPECT_EQ(json_names(R"({"b": 2, "a\u00e4": 0})", "v.json"),
            (std::vector<std::string>{"aä", "", "b"}));
  EXPECT_EQ(json_names(R"(["</s>", "a"])", "v.json"), (std::vector<std::string>{"</s>", "a"}));
  const auto error_of = [](const std::string& bytes) {
    return message_of(ExitCode::model, [&] { json_names(bytes, "v.json"); });
  };
  EXPECT_NE(error_of(R"({"a": 1000000000})").find("piece 'a' has the id"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": 18446744073709551615})").find("piece 'a' has the id"),
            std::string::npos);
  EXPECT_NE(error_of(R"({"a": 1000000})").find("1 pieces have ids up to"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": -1})").find("has the id -1"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": 1.5})").find("no whole number"), std::string::npos);
  EXPECT_NE(error_of(R"({"a": 1, "b": 1})").find("which another piece has"), std::string::npos);
  EXPECT_NE(error_of(R"(["a", 1])").find("entry 1 is not a string"), std::string::npos);
  EXPECT_NE(error_of("[]").find("no pieces"), std::string::npos);
  EXPECT_NE(error_of("3").find("expected an object"), std::string::npos);
  EXPECT_NE(error_of("[\"a\xFF\"]").find("is not JSON"), std::string::npos);
  EXPECT_NE(error_of(std::string(100'000, '[')).find("levels"), std::string::npos);
  EXPECT_NE(error_of(std::string("[\"a\0\"]", 6)).find("NUL"), std::string::npos);
}

TEST(ForeignNames, ReadsMarianVocabularies) {
  const std::string yaml =
      "</s>: 0\n<unk>: 1\n\",\": 2\n\"\\\"\\u2581\\x41\": 3\n'it''s': 4\n: : 5\n▁a: 7\n";
  EXPECT_EQ(marian_names(yaml, "v.yml"),
            (std::vector<std::string>{"</s>", "<unk>", ",", "\"▁A", "it's", ":", "", "▁a"}));
  EXPECT_EQ(marian_names(R"({"a": 0})", "v.yml"), (std::vector<std::string>{"a"}));
  for (const char* bad : {"a\n", "a: x\n", "\"a: 1\n", "\"\\q\": 1\n", "\"\\u12\": 1\n",
                          "\"\\ud800\": 0\n", "a: 99999999999999999999\n", ": 1\n"})
    EXPECT_NE(
        message_of(ExitCode::model, [&] { marian_names(bad, "v.yml"); }).find("v.yml:1: expected"),
        std::string::npos)
        << bad;
  EXPECT_NE(message_of(ExitCode::model, [&] { marian_names("a: 1000000000\n", "v.yml"); })
                .find("v.yml:1: piece 'a' has the id"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea
