#include "explain/word_explanation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/network_settings.h"

namespace fovea {
namespace {

// Words of one and of two pieces.
Vocabulary vocabulary() {
  return Vocabulary::from_entries(
      Segmentation::pieces,
      {{"the", 9}, {"do@@", 8}, {"gs", 7}, {"see", 6}, {"snow.", 5}, {"3", 4}});
}

TEST(WordExplanation, FindsTheFirstPieceOfAWord) {
  const Vocabulary words = vocabulary();
  std::vector<int32_t> ids = words.encode("the do@@ gs see the snow. 3");
  ids.push_back(kEos);
  EXPECT_EQ(find_word(words, ids, "the").piece, 0u);
  EXPECT_EQ(find_word(words, ids, "dogs").piece, 1u);
  EXPECT_EQ(find_word(words, ids, "gs").piece, 2u);  // a piece
  EXPECT_EQ(find_word(words, ids, "snow").piece, 5u);
  EXPECT_EQ(find_word(words, ids, "snow.").piece, 5u);
  EXPECT_EQ(find_word(words, ids, "4").piece, 4u);  // the fourth word
  EXPECT_EQ(find_word(words, ids, "3").piece, 6u);  // the text of a piece has priority over the
                                                    // number of a word
  EXPECT_EQ(find_word(words, ids, "</s>").piece, 7u);
  for (const char* missing : {"cat", "0", "99", ""})
    EXPECT_EQ(find_word(words, ids, missing).piece, std::nullopt) << missing;
}

TEST(WordExplanation, FindsTheNthOccurrence) {
  const Vocabulary words = vocabulary();
  const std::vector<int32_t> ids = words.encode("the snow. see the do@@ gs");
  EXPECT_EQ(find_word(words, ids, "the#1").piece, 0u);
  EXPECT_EQ(find_word(words, ids, "the#2").piece, 3u);
  const FoundWord missing = find_word(words, ids, "the#3");
  EXPECT_EQ(missing.piece, std::nullopt);
  EXPECT_EQ(missing.note("the#3"), "; 'the' occurs 2 times");
  EXPECT_EQ(find_word(words, ids, "dogs#2").note("dogs#2"), "; 'dogs' occurs once");
  EXPECT_EQ(find_word(words, ids, "cat#1").note("cat#1"), "");
  for (const char* none : {"the#0", "#1", "the#x"})
    EXPECT_EQ(find_word(words, ids, none).piece, std::nullopt) << none;
  const Vocabulary sharp = Vocabulary::from_entries(Segmentation::words, {{"c#2", 1}, {"c", 1}});
  EXPECT_EQ(find_word(sharp, sharp.encode("c c c#2"), "c#2").piece, 2u) << "written so";
}

TEST(WordExplanation, FindsTextInScriptsWithoutBlanks) {
  std::vector<Vocabulary::Entry> letters;
  for (const char* c : {"他", "和", "的", "她", "是", "学", "生"}) letters.push_back({c, 1});
  const Vocabulary words = Vocabulary::from_entries(Segmentation::characters, letters);
  const std::vector<int32_t> both = words.encode("他和他的她");
  EXPECT_EQ(find_word(words, both, "他").piece, 0u);
  EXPECT_EQ(find_word(words, both, "他#1").piece, 0u);
  EXPECT_EQ(find_word(words, both, "他#2").piece, 2u);
  EXPECT_EQ(find_word(words, both, "他#3").note("他#3"), "; '他' occurs 2 times");
  EXPECT_EQ(find_word(words, both, "和他的").piece, 1u) << "several words";
  const std::vector<int32_t> student = words.encode("她是学生");
  EXPECT_EQ(find_word(words, student, "学生").piece, 2u);
  EXPECT_EQ(find_word(words, student, "生").piece, 3u) << "a piece of a word";
  EXPECT_EQ(find_word(words, student, "他").piece, std::nullopt);
}

ModelBundle package_of(const char* type) {
  ModelConfig config;
  choose_network(config, type);
  config.encoder_layers = config.decoder_layers = 2;
  config.size = 8;
  if (config.as<TransformerConfig>()) transformer_of(config).heads = 2;
  config.max_length = 16;
  config.source_words = config.target_words = vocabulary().size();
  return {"", config, make_model(config, 1), vocabulary(), vocabulary()};
}

ExplainedPair pair_of(const ModelBundle& package) {
  ExplainedPair pair{"the do@@ gs", "see snow.", package.source.encode("the do@@ gs"),
                     package.target.encode("see snow.")};
  pair.source.push_back(kEos);
  pair.target.push_back(kEos);
  return pair;
}

TEST(WordExplanation, NamesLayerHeadAndPieces) {
  const ModelBundle package = package_of("transformer");
  const ExplainedPair pair = pair_of(package);
  const auto text = [&](const ExplainedWord& word) {
    return WordExplanation(package, pair, word).text({.width = 80});
  };
  EXPECT_NE(text({"dogs", "", 1, 1}).find("encoder attention, layer 1, head 1\n"),
            std::string::npos);
  EXPECT_NE(text({"dogs", ""}).find("The word has pieces do@@ gs; this is do@@."),
            std::string::npos);
  EXPECT_NE(text({"snow", ""}).find("to write \"snow.\"\ncross attention, layer 0, head 0"),
            std::string::npos);
  EXPECT_NE(text({"see", "decoder"}).find("decoder attention"), std::string::npos);
}

TEST(WordExplanation, JsonHasEveryNumber) {
  const ModelBundle package = package_of("recurrent");
  const ExplainedPair pair = pair_of(package);
  const auto all = nlohmann::json::parse(WordExplanation(package, pair, {"snow.", ""}).json());
  EXPECT_EQ(all["kind"], "cross");
  EXPECT_EQ(all["piece"], 1);
  EXPECT_EQ(all["mechanism"], "global attention, score additive");
  ASSERT_EQ(all["pieces"].size(), 4u);
  double sum = 0;
  for (const auto& step : all["steps"]) {
    if (step["name"] != "α_tj") continue;
    ASSERT_EQ(step["values"].size(), 4u);
    for (const double weight : step["values"]) sum += weight;
  }
  EXPECT_NEAR(sum, 1, 1e-6);
  EXPECT_EQ(all["steps"][0]["values"].size(), 8u);  // all of s_t
}

TEST(WordExplanation, RejectsMissingWordsAndMaps) {
  const ModelBundle package = package_of("transformer"), other = package_of("recurrent");
  const ExplainedPair pair = pair_of(package);
  const auto says = [&](const ModelBundle& of, const ExplainedWord& word) -> std::string {
    try {
      WordExplanation(of, pair, word);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::usage);
      return error.what();
    }
    return "";
  };
  EXPECT_NE(says(package, {"cat", ""}).find("no word 'cat' in: the dogs"), std::string::npos);
  EXPECT_NE(says(package, {"the", "cross"}).find("no word 'the'"), std::string::npos);
  EXPECT_NE(says(package, {"the", "", 2, 0}).find("layers 0 to 1"), std::string::npos);
  EXPECT_NE(says(package, {"the", "", 0, 2}).find("heads 0 to 1"), std::string::npos);
  EXPECT_NE(says(other, {"see", "encoder"}).find("no such attention"), std::string::npos);
  EXPECT_NE(says(other, {"the", ""}).find("no word 'the'"), std::string::npos);
}

}  // namespace
}  // namespace fovea
