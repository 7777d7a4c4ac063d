#include "serve/attention_json.h"

#include <gtest/gtest.h>

#include "models/explainable.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

// The JSON of a pair of 4 source and 3 target pieces, from a small model with random weights.
Json json_of(const std::string& kind, const std::string& score = "auto") {
  const Vocabulary words = Vocabulary::from_entries(
      Segmentation::words, {{"the", 9}, {"dog", 8}, {"sees", 7}, {"snow", 6}, {"a", 5}});
  ModelConfig config;
  config.encoder_layers = config.decoder_layers = 1;
  config.size = 8, config.max_length = 16;
  config.source_words = config.target_words = words.size();
  if (kind == "multi-head") {
    transformer_of(config).heads = 2;
  } else {
    AttentionConfig& attention = config.network.emplace<RecurrentConfig>().attention;
    attention.kind = kind, attention.score = score;
    attention.window = 3, attention.gaussians = 2;
  }
  const ServedModel model("", "en", "de", {"", config, make_model(config, 1), words, words});
  Translation translation;
  translation.source_ids = {4, 5, 6, 2};
  const std::vector<int32_t> source_offsets{0, 4}, read{1, 4, 5}, offsets{0, 3};
  translation.attention = model.package()
                              .model->as<Attentive>()
                              ->attention({translation.source_ids, source_offsets}, {read, offsets})
                              .front();
  return attention_json(model, "the dog sees", translation);
}

// The series say which values there are, for every mechanism of the registry.
TEST(AttentionJson, SeriesNameTheValuesOfEveryMechanism) {
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    const std::string kind = mechanism.about.name;
    if (kind == "none") continue;
    SCOPED_TRACE(kind);
    const Json json = json_of(kind);
    const Json& about = json["mechanism"];
    EXPECT_EQ(about["name"], kind);
    EXPECT_EQ(about["title"], mechanism.about.title);
    EXPECT_EQ(about["note"], mechanism.about.note);
    ASSERT_EQ(about["series"].size(), json["extra"].size());
    for (const Json& series : about["series"]) {
      const Json& values = json["extra"][series["name"].get<std::string>()];
      if (series["kind"] == "position" || series["kind"] == "frontier") {
        EXPECT_EQ(values.size(), 3u);
      }
    }
  }
}

TEST(AttentionJson, ValuesHaveTheirDocumentedForm) {
  const Json local = json_of("local-p")["extra"];
  EXPECT_EQ(local["p_t"].size(), 3u);
  EXPECT_EQ(local["window"].dump(), "3");
  EXPECT_EQ(local["sigma"].dump(), "1.5");
  EXPECT_EQ(json_of("window")["extra"]["kappa"].size(), 6u);
  EXPECT_EQ(json_of("hard-argmax")["extra"]["soft"].get<std::string>().size(), 16u);  // 12 bytes
  EXPECT_EQ(json_of("forward")["extra"]["frontier"][0].dump(), "0");
  EXPECT_EQ(json_of("local-m")["mechanism"]["series"].dump(),
            R"([{"name":"p_t","label":"p_t","kind":"position"},)"
            R"({"name":"window","label":"D","kind":"half_width"}])");
}

TEST(AttentionJson, ExplainsScoresAndHeads) {
  EXPECT_NE(json_of("global", "location")["mechanism"]["note"].get<std::string>().find("softmax"),
            std::string::npos);
  const Json heads = json_of("multi-head");
  EXPECT_EQ(heads["mechanism"]["name"], "multi-head");
  EXPECT_TRUE(heads["mechanism"]["series"].empty());
  EXPECT_TRUE(heads["extra"].empty());
}

}  // namespace
}  // namespace fovea
