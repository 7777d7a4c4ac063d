#include "serve/intervention_fields.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/check.h"
#include "models/model_config.h"
#include "serve/service.h"
#include "support/held_exchange.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::HeldExchange;

// A model with words of one letter, two layers and two heads, and random weights.
std::shared_ptr<const ServedModel> model() {
  std::vector<Vocabulary::Entry> letters;
  for (char c = 'a'; c <= 'l'; ++c) letters.push_back({std::string(1, c), 1});
  const Vocabulary vocabulary = Vocabulary::from_entries(Segmentation::words, letters);
  ModelConfig config;
  config.encoder_layers = config.decoder_layers = 2;
  auto& own = transformer_of(config);
  config.size = 8, own.heads = 2, own.inner = 8, config.max_length = 20;
  config.source_words = config.target_words = vocabulary.size();
  return std::make_shared<ServedModel>(
      "tiny", "en", "de",
      ModelBundle{"tiny", config, make_model(config, 5), vocabulary, vocabulary});
}

struct ServiceUnderTest {
  explicit ServiceUnderTest(std::shared_ptr<const ServedModel> one = model())
      : service({}, {}, {one}) {}
  Service service;

  std::shared_ptr<HeldExchange> send(const std::string& q, const Json& fields) {
    Json body = {{"q", q}, {"source", "en"}, {"target", "de"}, {"attention", true}};
    if (!fields.is_null()) body.update(fields);
    const auto held = std::make_shared<HeldExchange>();
    service.handle({"POST",
                    "/translate",
                    "",
                    {{"content-type", "application/json"}, {"host", "h"}},
                    body.dump(),
                    "::1"},
                   held);
    return held;
  }
  void work() {
    while (service.batcher().work(milliseconds(0))) continue;
  }
  Json ask(const Json& fields, const std::string& q = "a b c d") {
    const auto held = send(q, fields);
    work();
    EXPECT_EQ(held->replies.at(0).status, 200) << held->replies.at(0).body;
    return Json::parse(held->replies.at(0).body);
  }
  std::string error(const Json& fields, const std::string& q = "a b c d") {
    const auto held = send(q, fields);
    work();
    EXPECT_EQ(held->replies.at(0).status, 400) << held->replies.at(0).body;
    return Json::parse(held->replies.at(0).body).value("error", "");
  }
};

std::vector<int> bytes(const std::string& base64) {
  const std::string digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<int> found;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(digits.find(c));
    count += 6;
    if (count < 8) continue;
    count -= 8;
    found.push_back(static_cast<int>(bits >> count & 255));
  }
  return found;
}

// The bytes of a map in the answer.
std::vector<int> map_of(const Json& reply, const std::string& kind, int layer, int head) {
  for (const Json& map : reply["attention"][0]["attention"])
    if (map["kind"] == kind && map["layer"] == layer && map["head"] == head)
      return bytes(map["data"]);
  return {};
}

TEST(ServiceWhatIf, EmptyFieldsChangeNothing) {
  ServiceUnderTest s;
  const Json plain = s.ask({});
  EXPECT_EQ(s.ask({{"mask_words", Json::array()}, {"mask_heads", nullptr}, {"prefix", ""}}), plain);
  s.ask({{"mask_words", {1}}});
  EXPECT_EQ(s.ask({}), plain);
}

TEST(ServiceWhatIf, MasksWordsAndHeads) {
  ServiceUnderTest s;
  const Json reply = s.ask(
      {{"mask_words", {1}}, {"mask_heads", {{{"kind", "cross"}, {"layer", 1}, {"head", 0}}}}});
  for (const char* kind : {"encoder", "cross"})
    for (const int head : {0, 1}) {
      const std::vector<int> map = map_of(reply, kind, 0, head);
      ASSERT_GE(map.size(), 5u);
      for (size_t k = 0; k < map.size(); k += 5) {
        EXPECT_EQ(map[k + 1], 0);
        EXPECT_NEAR(map[k] + map[k + 2] + map[k + 3] + map[k + 4], 255, 2);
      }
    }
  for (const int w : map_of(reply, "cross", 1, 0)) EXPECT_EQ(w, 0);
  EXPECT_NE(map_of(reply, "cross", 1, 1)[0], 0);
}

TEST(ServiceWhatIf, ForcesStepsAndPrefixes) {
  ServiceUnderTest s;
  const Json plain = s.ask({});
  const Json reply =
      s.ask({{"prefix", {"c", "l"}},
             {"force_attention",
              {{{"step", 1}, {"word", 3}},
               {{"step", 2}, {"weights", {0.2, 0.2, 0.2, 0.4, 0}}, {"layer", 0}, {"head", 1}}}}});
  EXPECT_TRUE(reply["translatedText"].get<std::string>().starts_with("c l"));
  const std::vector<int> all = map_of(reply, "cross", 1, 0), one = map_of(reply, "cross", 0, 1),
                         other = map_of(reply, "cross", 0, 0);
  EXPECT_EQ(std::vector(all.begin() + 5, all.begin() + 10), (std::vector{0, 0, 0, 255, 0}));
  EXPECT_EQ(std::vector(one.begin() + 10, one.begin() + 15), (std::vector{51, 51, 51, 102, 0}));
  EXPECT_NE(std::vector(other.begin() + 10, other.begin() + 15), (std::vector{51, 51, 51, 102, 0}));
  const Json& steps = reply["attention"][0]["steps"];
  EXPECT_EQ(steps[0]["token"], "c");
  EXPECT_EQ(steps[1]["token"], "l");
  // The most probable words of a step are those of the changed model.
  EXPECT_EQ(steps[0]["topk"], plain["attention"][0]["steps"][0]["topk"]);
  for (const Json& probable : steps[1]["topk"])
    if (probable[0] == "l") {
      EXPECT_NEAR(std::log(probable[1].get<double>()), steps[1]["logprob"].get<double>(), 1e-3);
    }
  EXPECT_TRUE(s.ask({{"prefix", "c l"}})["translatedText"].get<std::string>().starts_with("c l"));
}

TEST(ServiceWhatIf, EqualInterventionsAreAnsweredSeparately) {
  ServiceUnderTest s;
  const Json fields = {{"mask_words", {1}}};
  const Json first = s.ask(fields), second = s.ask(fields, "d c b");
  const auto a = s.send("a b c d", fields), b = s.send("d c b", fields), c = s.send("a b", {});
  s.work();
  EXPECT_EQ(Json::parse(a->replies.at(0).body), first);
  EXPECT_EQ(Json::parse(b->replies.at(0).body), second);
  EXPECT_EQ(Json::parse(c->replies.at(0).body), s.ask({}, "a b"));
}

// The thread of the connections neither reads a model nor uses its vocabularies.
TEST(ServiceWhatIf, WorkerThreadsReadTheModel) {
  const auto ready = model();
  for (const bool broken : {false, true}) {
    const auto late = std::make_shared<ServedModel>(
        ModelName{"late", "en", "de", true}, ready->config(), [&]() -> ModelBundle {
          if (broken) fail(ExitCode::model, "the file is damaged");
          const ModelBundle& own = ready->package();
          return {"late", own.config, make_model(own.config, 5), own.source, own.target};
        });
    ServiceUnderTest s(late);
    const auto good = s.send("a b c d", {{"prefix", "c"}, {"mask_words", {1}}}),
               bad = s.send("a b c d", {{"mask_words", {9}}});
    EXPECT_FALSE(late->loaded());
    s.work();
    EXPECT_EQ(good->replies.at(0).status, broken ? 500 : 200) << good->replies.at(0).body;
    EXPECT_EQ(bad->replies.at(0).status, broken ? 500 : 400) << bad->replies.at(0).body;
    EXPECT_EQ(s.service.batcher().waiting_cost(), 0);
  }
}

// The same for streams: an error is an answer, not an event.
TEST(ServiceWhatIf, IsReadForStreams) {
  ServiceUnderTest s;
  const auto stream = [&](const char* masked) {
    const auto held = std::make_shared<HeldExchange>();
    s.service.handle({"POST",
                      "/v1/translate/stream",
                      std::string("q=a+b&source=en&target=de&prefix=c&mask_words=") + masked,
                      {},
                      "",
                      "::1"},
                     held);
    s.work();
    return held->replies.at(0);
  };
  EXPECT_EQ(stream("[9]").status, 400);
  const std::string events = stream("[1]").body;
  EXPECT_NE(events.find("event: done\ndata: {\"translatedText\":\"c"), std::string::npos) << events;
}

TEST(ServiceWhatIf, RefusesWithFieldAndRange) {
  ServiceUnderTest s;
  const std::string start = "Invalid request: ";
  EXPECT_EQ(s.error({{"mask_words", {5}}}),
            start +
                "mask_words: there is no word 5; the sentence has words 0 to 4, of which the "
                "last is </s>");
  EXPECT_EQ(s.error({{"mask_words", {"a"}}}),
            start + "mask_words: a word must be a whole number, 0 or more");
  EXPECT_EQ(s.error({{"mask_words", 3}}), start + "mask_words parameter is not a list");
  EXPECT_EQ(s.error({{"mask_words", {0, 1, 2, 3, 4, 4}}}),
            start + "mask_words: 6 entries, at most 5 are allowed");
  EXPECT_EQ(s.error({{"mask_heads", {"cross"}}}),
            start + "mask_heads parameter is not a list of objects {kind, layer, head}");
  EXPECT_EQ(s.error({{"mask_heads", {{{"kind", "cross"}, {"layer", 7}, {"head", 0}}}}}),
            start + "mask_heads: there is no layer 7; cross attention has layers 0 to 1");
  EXPECT_EQ(s.error({{"mask_heads", {{{"layer", 7}, {"head", 0}}}}}),
            start + "mask_heads: kind must be encoder, decoder or cross");
  EXPECT_EQ(s.error({{"force_attention", {{{"step", 0}, {"word", 1.5}}}}}),
            start + "force_attention: word must be a whole number, 0 or more");
  EXPECT_EQ(s.error({{"force_attention", {{{"step", 0}, {"word", 1}, {"layer", -7}}}}}),
            start + "force_attention: layer must be a whole number, 0 or more");
  EXPECT_EQ(s.error({{"force_attention", {{{"step", 0}, {"weights", {1, 1}}}}}}),
            start +
                "force_attention: 2 weights, expected one for each of the 5 words, "
                "including </s>");
  EXPECT_EQ(s.error({{"force_attention", {{{"word", 1}}}}}),
            start + "force_attention: there is no step -1; steps are 0 to 19");
  EXPECT_EQ(s.error({{"prefix", {"zebra"}}}),
            start + "prefix: the target vocabulary has no piece 'zebra'");
  EXPECT_EQ(s.error({{"prefix", {"</s>"}}}),
            start + "prefix: the target vocabulary has no piece '</s>'");
  std::string many = "a";
  for (int i = 1; i < 20; ++i) many += " a";
  EXPECT_EQ(s.error({{"prefix", many}}), start + "prefix: 20 pieces, at most 19 are allowed");
  const std::string one =
      start +
      "prefix, mask_words, mask_heads and force_attention require q to be one sentence and format "
      "to be text";
  EXPECT_EQ(s.error({{"mask_words", {0}}}, "a b. A b."), one);
  EXPECT_EQ(s.error({{"prefix", "a"}, {"format", "html"}}), one);
  EXPECT_EQ(s.error({{"prefix", "a"}, {"q", {"a", "b"}}}), one);
}

}  // namespace
}  // namespace fovea
