#include "decode/generation_defaults.h"

#include <gtest/gtest.h>

#include "temporary.h"

namespace fovea {
namespace {

const Vocabulary kVocabulary = Vocabulary::from_entries(
    Segmentation::words, {{"de_DE", 1}, {"en_XX", 1}, {"dog", 1}, {"cat", 1}});

TEST(GenerationDefaults, ResolvesThePiecesOfTheFrame) {
  GenerationConfig config;
  EXPECT_EQ(sentence_frame(config, kVocabulary, kVocabulary), SentenceFrame{});
  config.start = "</s>";
  config.source_suffix = {"</s>", "en_XX"};
  config.source_end = false;
  config.target_prefix = {"de_DE"};
  const SentenceFrame frame = sentence_frame(config, kVocabulary, kVocabulary);
  EXPECT_EQ(frame.start, kEos);
  EXPECT_EQ(frame.source_suffix, (std::vector<int32_t>{kEos, 5}));
  EXPECT_EQ(frame.before_first(), 4);
  EXPECT_EQ(frame.added_pieces(), 2);
  EXPECT_EQ(frame.added_pieces(), config.added_pieces());
}

TEST(GenerationDefaults, NamesAPieceThatTheVocabularyLacks) {
  GenerationConfig config;
  config.target_prefix = {"fr_XX"};
  EXPECT_NE(message_of(ExitCode::model, [&] { sentence_frame(config, kVocabulary, kVocabulary); })
                .find("model.generation.target_prefix: the vocabulary has no piece 'fr_XX'"),
            std::string::npos);
  config = {};
  config.suppress = {"bird"};
  EXPECT_NE(message_of(ExitCode::model, [&] { search_defaults(config, kVocabulary); })
                .find("model.generation.suppress"),
            std::string::npos);
}

TEST(GenerationDefaults, TheDefaultsAreThoseOfASearch) {
  const SearchOptions options = search_defaults({}, kVocabulary), defaults;
  EXPECT_EQ(options.beam, defaults.beam);
  EXPECT_EQ(options.length_penalty, defaults.length_penalty);
  EXPECT_EQ(options.max_length_factor, defaults.max_length_factor);
  EXPECT_EQ(options.rule, defaults.rule);
}

TEST(GenerationDefaults, AMaximumLengthReplacesTheFactor) {
  GenerationConfig config;
  config.max_length = 512;
  config.suppress = {"<pad>", "dog"};
  const SearchOptions options = search_defaults(config, kVocabulary);
  EXPECT_EQ(options.max_length, 512);
  EXPECT_EQ(options.max_length_factor, 1000);
  EXPECT_EQ(options.suppress, (std::vector<int32_t>{kPad, 6}));
  options.check();
}

}  // namespace
}  // namespace fovea
