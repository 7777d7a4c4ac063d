#include "serve/source_language.h"

#include <gtest/gtest.h>

#include "serve/service.h"
#include "support/echo_engine.h"
#include "support/held_exchange.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

HttpReply reply_of(const ServedModels& models, const std::string& path, const Json& body) {
  Service service({}, {}, models);
  const auto held = std::make_shared<testing::HeldExchange>();
  const Headers headers{{"content-type", "application/json"}, {"host", "h"}};
  service.handle({"POST", path, "", headers, body.dump(), "::1"}, held);
  while (service.batcher().work(std::chrono::milliseconds(0))) continue;
  return held->replies.at(0);
}

const char* const kChinese = "我们是老师。她有一本书。";

Json auto_question(const char* text, const char* target) {
  return {{"q", text}, {"source", "auto"}, {"target", target}};
}

TEST(SourceLanguage, IsTheMostProbableThatAModelReads) {
  const ServedModels models{echo_model("zh-Hans", "en"), echo_model("en", "zh-Hans"),
                            echo_model("de", "en")};
  EXPECT_EQ(source_language(kChinese, models, "en").language, "zh-Hans");
  EXPECT_EQ(source_language("Das ist ein Hund.", models, "en").language, "de");
  EXPECT_EQ(source_language("This is a dog.", models, "zh-Hans").language, "en");
  // For traditional Chinese, a model of simplified Chinese is the best.
  const DetectedLanguage traditional =
      source_language("這是我們的書，還有兩個學生。", models, "en");
  EXPECT_EQ(traditional.language, "zh-Hans");
  // A Dutch word is too short to refuse it, although no model reads Dutch.
  const DetectedLanguage unsure = source_language("fiets", models, "en");
  EXPECT_TRUE(unsure.language == "de" || unsure.language == "en") << unsure.language;
  EXPECT_LT(unsure.confidence, kGuess);
}

TEST(SourceLanguage, WithoutEvidenceIsTheSourceOfAModelForTheTarget) {
  const ServedModels models{echo_model("de", "en"), echo_model("en", "de")};
  for (const char* text : {"", "123", "\U0001F600"}) {
    EXPECT_EQ(source_language(text, models, "en").language, "de") << text;
    EXPECT_EQ(source_language(text, models, "de").language, "en") << text;
    EXPECT_EQ(source_language(text, models, "en").confidence, 0) << text;
  }
  EXPECT_EQ(source_language("123", {echo_model("en", "de")}, "en").language, "en");
}

TEST(SourceLanguage, WithoutAModelIsRefusedByName) {
  const ServedModels models{echo_model("en", "de")};
  const HttpReply reply = reply_of(models, "/translate", auto_question(kChinese, "de"));
  EXPECT_EQ(reply.status, 400) << reply.body;
  EXPECT_NE(reply.body.find("Chinese (zh-Hans) is not supported"), std::string::npos) << reply.body;
  const HttpReply deepl =
      reply_of(models, "/v2/translate", {{"text", {kChinese}}, {"target_lang", "DE"}});
  EXPECT_EQ(deepl.status, 400) << deepl.body;
}

TEST(SourceLanguage, IsNotConfusedWithTheTarget) {
  const ServedModels models{echo_model("zh-Hans", "en"), echo_model("en", "zh-Hans")};
  const Json reply =
      Json::parse(reply_of(models, "/translate", auto_question(kChinese, "en")).body);
  EXPECT_EQ(reply["detectedLanguage"]["language"], "zh-Hans") << reply;
  EXPECT_GT(reply["detectedLanguage"]["confidence"], 90) << reply;
}

TEST(Warnings, NameWhatTheModelCannotRead) {
  const ServedModels models{echo_model("en", "de")};
  Json question = {{"q", kChinese}, {"source", "en"}, {"target", "de"}};
  Json reply = Json::parse(reply_of(models, "/translate", question).body);
  ASSERT_EQ(reply["warnings"].size(), 2u) << reply;
  EXPECT_EQ(reply["warnings"][0]["code"], "unreadable");
  EXPECT_EQ(reply["warnings"][0]["text"], 0);
  EXPECT_GT(reply["warnings"][0]["unknown"], 0);
  EXPECT_EQ(reply["warnings"][1]["code"], "other_language");
  EXPECT_EQ(reply["warnings"][1]["language"], "zh-Hans");
  question["q"] = {"the dog is here", "das ist ein kleiner Hund und er läuft durch den Schnee"};
  reply = Json::parse(reply_of(models, "/translate", question).body);
  ASSERT_GE(reply["warnings"].size(), 1u) << reply;
  EXPECT_EQ(reply["warnings"].back()["code"], "other_language");
  EXPECT_EQ(reply["warnings"].back()["language"], "de");
  EXPECT_EQ(reply["warnings"].back()["text"], 1);
  reply = Json::parse(
      reply_of(
          models, "/v2/translate",
          {{"text", {"the dog is here", kChinese}}, {"source_lang", "EN"}, {"target_lang", "DE"}})
          .body);
  EXPECT_FALSE(reply["translations"][0].contains("warnings")) << reply;
  EXPECT_EQ(reply["translations"][1]["warnings"][0]["code"], "unreadable") << reply;
  const HttpReply stream = reply_of(models, "/v1/translate/stream",
                                    {{"q", kChinese}, {"source", "en"}, {"target", "de"}});
  EXPECT_NE(stream.body.find(R"("warnings":[{"code":"unreadable")"), std::string::npos)
      << stream.body;
}

TEST(Warnings, AreAbsentForReadableText) {
  const ServedModels models{echo_model("en", "de")};
  for (const char* text : {"the dog is here", "ok", "123", ""})
    EXPECT_FALSE(
        Json::parse(
            reply_of(models, "/translate", {{"q", text}, {"source", "en"}, {"target", "de"}}).body)
            .contains("warnings"))
        << text;
}

}  // namespace
}  // namespace fovea
