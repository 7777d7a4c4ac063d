#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "text/foreign_segmentation.h"
#include "text/foreign_vocabulary.h"
#include "text_samples.h"

namespace fovea {
namespace {

using nlohmann::json;

const SpecialNames kNames{"<pad>", "<s>", "</s>", "<unk>"};

json special(int id, const std::string& content) {
  return {{"id", id}, {"content", content}, {"special", true}};
}

json tokenizer(const json& model, const json& pre_tokenizer) {
  return {{"version", "1.0"},
          {"added_tokens",
           {special(0, "<s>"), special(1, "<pad>"), special(2, "</s>"), special(3, "<unk>")}},
          {"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer},
          {"model", model}};
}

// GPT-2's alphabet, and merges.
json byte_level(const std::vector<std::pair<std::string, std::string>>& merges) {
  json vocab{{"<s>", 0}, {"<pad>", 1}, {"</s>", 2}, {"<unk>", 3}}, list = json::array();
  for (int byte = 0; byte < 256; ++byte)
    vocab[byte_characters(std::string(1, static_cast<char>(byte)))] = 4 + byte;
  for (const auto& [left, right] : merges) {
    vocab.emplace(left + right, vocab.size());
    list.push_back({left, right});
  }
  json file = tokenizer({{"type", "BPE"}, {"vocab", vocab}, {"merges", list}},
                        {{"type", "ByteLevel"}, {"add_prefix_space", false}});
  file["added_tokens"].push_back(special(static_cast<int>(vocab.size()), "<mask>"));
  return file;
}

json unigram() {
  const json vocab = json::parse(
      R"([["<s>", 0], ["<pad>", 0], ["</s>", 0], ["<unk>", 0], ["\u2581the", -2],
          ["\u2581", -3], ["t", -4], ["h", -4], ["e", -4], ["he", -5], ["e\u2581th", -1],
          ["__de__", 0]])");
  json file = tokenizer(
      {{"type", "Unigram"}, {"unk_id", 3}, {"vocab", vocab}},
      {{"type", "Sequence"},
       {"pretokenizers",
        {{{"type", "WhitespaceSplit"}},
         {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"prepend_scheme", "always"}}}}});
  file["added_tokens"].push_back(special(11, "__de__"));
  return file;
}

json metaspace_bpe() {
  const json vocab{{"<s>", 0},
                   {"<pad>", 1},
                   {"</s>", 2},
                   {"<unk>", 3},
                   {"\u2581", 4},
                   {"a", 5},
                   {"b", 6},
                   {"ab", 7},
                   {"\u2581"
                    "ab",
                    8},
                   {"ba", 9}};
  const json merges{"b a", "a b", "\u2581 ab"};
  return tokenizer({{"type", "BPE"},
                    {"fuse_unk", true},
                    {"unk_token", "<unk>"},
                    {"vocab", vocab},
                    {"merges", merges}},
                   {{"type", "Metaspace"}, {"replacement", "\u2581"}, {"add_prefix_space", true}});
}

Vocabulary import(const json& file) {
  const std::string text = file.dump();
  const TokenizerPieces pieces = tokenizer_pieces(text, "tokenizer.json");
  const PieceOrder order = order_pieces(pieces.names, kNames, pieces.controls, "tokenizer.json");
  return import_tokenizer_json(text, order, "tokenizer.json");
}

std::vector<std::string> cut(const Vocabulary& v, std::string_view line) {
  return v.pieces(v.encode(line));
}

using Pieces = std::vector<std::string>;

TEST(TokenizerJson, ByteLevelIsExact) {
  const Vocabulary v = import(byte_level({{"h", "e"}, {"l", "l"}, {"Ġ", "he"}, {"Ã", "¤"}}));
  EXPECT_EQ(v.cut(), Segmentation::bytes);
  EXPECT_EQ(cut(v, "he hell ä"), (Pieces{"he", "Ġhe", "ll", "Ġ", "Ã¤"}));
  EXPECT_EQ(cut(v, "h  <mask>").back(), ">");
  for (const char* text :
       {"he hell ä", "a\u3000b", "don't  2²x \u00BD", "我爱你", "\U0001F469\u200D"}) {
    EXPECT_EQ(v.decode(v.encode(text)), text);
    EXPECT_EQ(v.normalise(text), text);
    EXPECT_EQ(v.words_in(text).size(), v.encode(text).size() + 1);
    EXPECT_EQ(v.coverage(text).unknown, 0);
  }
  EXPECT_EQ(v.words_in("he hell he"), (std::vector<int>{0, 1, 1, 2, 3}));
  EXPECT_EQ(v.words_of(v.encode("he hell he")), (std::vector<int>{0, 1, 1, 2}));
  const std::vector<int32_t> half{v.id("Ã"), v.id("he"), v.id("<mask>"), kEos};
  EXPECT_EQ(v.decode(half), "he") << "a byte that forms no character is omitted";
  const samples::Folder folder;
  v.save(folder / "vocab.txt");
  EXPECT_EQ(cut(Vocabulary::load(folder / "vocab.txt"), "he ä"), cut(v, "he ä"));
  json prefixed = byte_level({{"h", "e"}, {"Ġ", "he"}});
  prefixed["pre_tokenizer"]["add_prefix_space"] = true;
  EXPECT_EQ(cut(import(prefixed), "he"), (Pieces{"Ġhe"}));
  EXPECT_EQ(import(prefixed).words_in("he x"), (std::vector<int>{0, 1, 1, 2}));
}

TEST(TokenizerJson, SplitsLikeGpt2) {
  const auto words = [](std::string_view line) {
    const auto views = gpt2_words(line);
    return Pieces(views.begin(), views.end());
  };
  EXPECT_EQ(words("I'll don't I'LL"), (Pieces{"I", "'ll", " don", "'t", " I", "'", "LL"}));
  EXPECT_EQ(words("a  b\n\nc "), (Pieces{"a", " ", " b", "\n", "\n", "c", " "}));
  EXPECT_EQ(words("x1½ !? 我ä"), (Pieces{"x", "1½", " !?", " 我ä"}));
  EXPECT_EQ(words(" \u3000a\u00A0b"), (Pieces{" ", "\u3000", "a", "\u00A0", "b"}));
  EXPECT_EQ(words(" 's"), (Pieces{" '", "s"}));
  EXPECT_EQ(words(""), Pieces{});
}

TEST(TokenizerJson, UnigramBecomesSentencePiece) {
  const Vocabulary v = import(unigram());
  EXPECT_EQ(v.cut(), Segmentation::sentencepiece);
  EXPECT_EQ(cut(v, "the  the he x"),
            (Pieces{"\u2581the", "\u2581the", "\u2581", "he", "\u2581", "<unk>"}))
      << "no piece crosses a blank";
  EXPECT_EQ(v.decode(v.encode("the he")), "the he");
  EXPECT_EQ(cut(v, "__de__").back(), "<unk>");
  EXPECT_EQ(v.decode(std::vector<int32_t>{v.id("__de__"), v.id("\u2581the")}), "the");
}

TEST(TokenizerJson, BpeWithMetaspaceBecomesSentencePiece) {
  EXPECT_EQ(cut(import(metaspace_bpe()), "ab bab"), (Pieces{"\u2581"
                                                            "ab",
                                                            "\u2581", "ba", "b"}));
}

std::string error_of(const json& file) {
  return message_of(ExitCode::model, [&] { import(file); });
}

TEST(TokenizerJson, RefusesOthersByName) {
  const auto expect = [](json file, const std::string& path, const json& value,
                         const char* message) {
    file[json::json_pointer(path)] = value;
    const std::string error = error_of(file);
    EXPECT_NE(error.find(message), std::string::npos) << error;
    EXPECT_EQ(error.find("tokenizer.json: "), 0u) << error;
  };
  const json bytes = byte_level({{"h", "e"}});
  expect(bytes, "/model/type", "WordPiece", "the model 'WordPiece'");
  expect(bytes, "/normalizer", {{"type", "Lowercase"}}, "the normalizer 'Lowercase'");
  expect(bytes, "/pre_tokenizer", {{"type", "Whitespace"}}, "the pre_tokenizer 'Whitespace'");
  expect(bytes, "/pre_tokenizer", nullptr, "neither Metaspace");
  expect(bytes, "/pre_tokenizer/use_regex", false, "the pre_tokenizer 'ByteLevel'");
  expect(bytes, "/normalizer", {{"type", "Strip"}}, "ByteLevel with a normalizer");
  expect(bytes, "/model/end_of_word_suffix", "</w>", "'end_of_word_suffix'");
  expect(bytes, "/model/ignore_merges", true, "'ignore_merges'");
  expect(bytes, "/model/dropout", 0.1, "'dropout'");
  expect(bytes, "/model/merges", {"h x"}, "merge 0 is not two pieces");
  expect(bytes, "/model/merges", {3}, "merge 0 is not two pieces");
  expect(bytes, "/model/merges", "h e", "'merges' is not a list");
  expect(bytes, "/model/vocab/h", 1000000000, "an id is not a number");
  expect(bytes, "/model/vocab/h", -1, "an id is not a number");
  expect(bytes, "/model/vocab/h", 5, "two pieces have the id 5");
  expect(bytes, "/model/vocab/" + std::string(2000, 'h'), 300, "piece 300 is longer than");
  expect(bytes, "/model/vocab/hh", 1000000, "most ids have no piece");
  expect(bytes, "/model/vocab", 5, "has no 'vocab'");
  expect(bytes, "/added_tokens", 5, "'added_tokens' is not a list");
  expect(bytes, "/added_tokens/0", 5, "expected an object");
  json without = bytes;
  without["model"]["vocab"].erase("x");
  EXPECT_NE(error_of(without).find("for byte 120"), std::string::npos);
  const json pieces = unigram();
  expect(pieces, "/model/unk_id", nullptr, "without 'unk_id'");
  expect(pieces, "/model/vocab/4", {"a"}, "an entry of 'vocab'");
  expect(pieces, "/model/vocab/4/1", "x", "the score of");
  expect(pieces, "/pre_tokenizer/pretokenizers/1/replacement", "_", "the replacement");
  expect(pieces, "/pre_tokenizer/pretokenizers/1/prepend_scheme", "never", "neither Metaspace");
  expect(pieces, "/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "?"}},
         "base 64");
  expect(pieces, "/normalizer", {{"type", "Precompiled"}, {"precompiled_charsmap", "AAAAAAAA"}},
         "normalisation table is damaged");
  const json bpe = metaspace_bpe();
  expect(bpe, "/model/fuse_unk", false, "'fuse_unk'");
  expect(bpe, "/model/merges", {"a b", "b a", "a b"}, "not together");
  expect(bpe,
         "/model/vocab/\u2581"
         "a",
         10, "not all its divisions");
  expect(json::array(), "", json::array(), "no object");
}

TEST(TokenizerJson, SurvivesDamage) {
  Random random(11);
  for (const json& file : {byte_level({{"h", "e"}}), unigram(), metaspace_bpe()}) {
    const std::string good = file.dump();
    for (int i = 0; i < 60; ++i) {
      std::string text = good;
      if (i % 3 == 0) text.resize(random.below(text.size()));
      for (uint64_t n = random.below(4); n > 0 && !text.empty(); --n)
        text[random.below(text.size())] = "\"{}[],:0a-\xFF"[random.below(11)];
      try {
        const TokenizerPieces pieces = tokenizer_pieces(text, "t.json");
        const PieceOrder order = order_pieces(pieces.names, {}, pieces.controls, "t.json");
        const Vocabulary v = import_tokenizer_json(text, order, "t.json");
        v.decode(v.encode("he the ab"));
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ExitCode::model);
      }
    }
  }
  const std::string deep = std::string(1'000'000, '[');
  EXPECT_NE(message_of(ExitCode::model, [&] { tokenizer_pieces(deep, "t.json"); }).find("levels"),
            std::string::npos);
}

}  // namespace
}  // namespace fovea
