#include "decode/word_intervention.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

constexpr WordWhatIf::Names kNames{"mask_words", "mask_heads", "force_attention"};

// Three words and </s>; the second consists of two pieces.
const std::vector<int> kWordsOf{0, 1, 1, 2, 3};
constexpr int64_t kWords = 4;

ModelConfig config() {
  ModelConfig c;
  c.encoder_layers = 3, c.decoder_layers = 2, transformer_of(c).heads = 4, c.max_length = 20;
  return c;
}

std::string error_of(const WordWhatIf& what) {
  try {
    what.check(config(), kWords, kNames);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "";
}

TEST(WordWhatIf, ConvertsToPieces) {
  WordWhatIf what{.masked = {1}, .silent = {{"cross", 0, 1}}};
  what.forced = {{.step = 2, .word = 3}, {.step = 3, .weights = {0.25, 0.5, 0.25, 0}, .layer = 1}};
  const WhatIf pieces = what.in_pieces(kWordsOf);
  EXPECT_EQ(pieces.masked, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(pieces.silent, what.silent);
  EXPECT_EQ(pieces.forced[0].weights, (std::vector<double>{0, 0, 0, 0, 1}));
  EXPECT_EQ(pieces.forced[1].weights, (std::vector<double>{0.25, 0.25, 0.25, 0.25, 0}));
  EXPECT_EQ(pieces.forced[1].layer, 1);
  EXPECT_EQ(pieces.forced[1].head, -1);
  EXPECT_TRUE(WordWhatIf{}.in_pieces(kWordsOf).empty());
}

TEST(WordWhatIf, ErrorsHaveNameAndRange) {
  EXPECT_EQ(error_of({.masked = {0, 3}, .silent = {{"encoder", 2, 3}}}), "");
  EXPECT_EQ(error_of({.masked = {4}}),
            "mask_words: there is no word 4; the sentence has words 0 to 3, of which the last is "
            "</s>");
  EXPECT_EQ(error_of({.masked = {0, 1, 2, 3, 3}}),
            "mask_words: all 4 words are masked; leave at least one unmasked");
  EXPECT_EQ(error_of({.silent = {{"sideways", 0, 0}}}),
            "mask_heads: this model has no attention of kind 'sideways'; kinds are encoder, "
            "decoder and cross");
  EXPECT_EQ(error_of({.silent = {{"cross", 2, 0}}}),
            "mask_heads: there is no layer 2; cross attention has layers 0 to 1");
  EXPECT_EQ(error_of({.silent = {{"cross", 1, -1}}}),
            "mask_heads: there is no head -1; cross attention has heads 0 to 3");
  EXPECT_EQ(error_of({.forced = {{.step = 20, .word = 0}}}),
            "force_attention: there is no step 20; steps are 0 to 19");
  EXPECT_EQ(
      error_of({.forced = {{.word = -1}}}),
      "force_attention: there is no word -1; the sentence has words 0 to 3, of which the last "
      "is </s>");
  EXPECT_EQ(error_of({.forced = {{.weights = {0.5, 0.5}}}}),
            "force_attention: 2 weights, expected one for each of the 4 words, including </s>");
  EXPECT_EQ(error_of({.forced = {{.weights = {0.5, 0.25, 0, 0}}}}),
            "force_attention: weights must be from 0 to 1 and sum to 1; these sum to 0.75");
  EXPECT_EQ(error_of({.forced = {{.word = 0, .head = 4}}}),
            "force_attention: there is no head 4; cross attention has heads 0 to 3");
  EXPECT_EQ(error_of({.masked = {1}, .forced = {{.word = 1}}}),
            "force_attention: step 0 has weight on word 1, which is masked; remove one of them");
  EXPECT_EQ(error_of({.masked = {1}, .forced = {{.weights = {0.5, 0.5, 0, 0}}}}),
            "force_attention: step 0 has weight on word 1, which is masked; remove one of them");
}

TEST(WordWhatIf, NeedsCrossAttention) {
  ModelConfig without = config();
  without.network.emplace<RecurrentConfig>().attention.kind = "none";
  EXPECT_THROW((WordWhatIf{.masked = {0}}.check(without, kWords, kNames)), Error);
  EXPECT_THROW((WordWhatIf{.forced = {{.word = 0}}}.check(without, kWords, kNames)), Error);
}

}  // namespace
}  // namespace fovea
