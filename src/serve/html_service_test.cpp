#include <gtest/gtest.h>

#include "serve/service.h"
#include "support/echo_engine.h"
#include "support/held_exchange.h"

// Translates HTML through the complete service.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::HeldExchange;

std::shared_ptr<const ServedModel> model_without_attention() {
  const Vocabulary words =
      Vocabulary::from_entries(Segmentation::words, {{"the", 9}, {"dog", 8}, {"sees", 7}});
  ModelConfig config;
  RecurrentConfig& own = config.network.emplace<RecurrentConfig>();
  config.encoder_layers = config.decoder_layers = 1;
  config.size = 8;
  config.max_length = 16;
  own.attention.kind = "none";
  config.source_words = config.target_words = words.size();
  return std::make_shared<ServedModel>(
      "none", "en", "de", ModelBundle{"", config, make_model(config, 1), words, words});
}

HttpReply asked(const ServedModels& models, const std::string& path, const std::string& type,
                const std::string& body) {
  Service service({}, {}, models);
  const auto held = std::make_shared<HeldExchange>();
  service.handle({"POST", path, "", {{"content-type", type}, {"host", "h"}}, body, "::1"}, held);
  while (service.batcher().work(milliseconds(0))) continue;
  return held->replies.at(0);
}

HttpReply asked_json(const ServedModels& models, const std::string& path, const Json& body) {
  return asked(models, path, "application/json", body.dump());
}

TEST(HtmlService, DetectsTheLanguageOfTheTextAlone) {
  const ServedModels models{echo_model("en", "de"), echo_model("de", "en")};
  const std::string html =
      "<style>.der, .die, .das { und: nicht-auch-eine }</style>"
      "<p title=\"das ist nicht der Titel und auch nicht die Seite\">The dog is here</p>"
      "<script>function ichBinEinProgrammUndNichtDieSprache() {}</script>";
  Json question = {{"q", html}, {"source", "auto"}, {"target", "de"}, {"format", "html"}};
  Json reply = Json::parse(asked_json(models, "/translate", question).body);
  EXPECT_EQ(reply["detectedLanguage"]["language"], "en") << reply;
  question["format"] = "text";
  reply = Json::parse(asked_json(models, "/translate", question).body);
  EXPECT_EQ(reply["detectedLanguage"]["language"], "de") << "if everything is text";
  reply =
      Json::parse(asked_json(models, "/v2/translate",
                             {{"text", {html}}, {"target_lang", "DE"}, {"tag_handling", "html"}})
                      .body);
  EXPECT_EQ(reply["translations"][0]["detected_source_language"], "EN") << reply;
}

TEST(HtmlService, NeedsNoAttention) {
  const ServedModels models{model_without_attention()};
  const std::string html = "<p>the <b>dog</b> sees</p>";
  HttpReply reply = asked_json(
      models, "/translate", {{"q", html}, {"source", "en"}, {"target", "de"}, {"format", "html"}});
  EXPECT_EQ(reply.status, 200) << reply.body;
  EXPECT_NE(reply.body.find("<b>"), std::string::npos) << reply.body;
  reply = asked_json(
      models, "/v2/translate",
      {{"text", {html}}, {"source_lang", "EN"}, {"target_lang", "DE"}, {"tag_handling", "html"}});
  EXPECT_EQ(reply.status, 200) << reply.body;
  const auto part = [](const std::string& name, const std::string& value) {
    return "--B\r\nContent-Disposition: form-data; name=" + name + "\r\n\r\n" + value + "\r\n";
  };
  reply = asked(models, "/translate_file", "multipart/form-data; boundary=B",
                part("source", "en") + part("target", "de") + part("file; filename=a.html", html) +
                    "--B--\r\n");
  EXPECT_EQ(reply.status, 200) << reply.body;
}

}  // namespace
}  // namespace fovea
