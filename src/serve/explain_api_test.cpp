#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "explain/row_explanation.h"
#include "serve/service.h"
#include "support/held_exchange.h"
#include "support/network_settings.h"

// The endpoints that explain a model, tested with small models with random weights.
namespace fovea {
namespace {

using Json = nlohmann::ordered_json;
using std::chrono::milliseconds;
using testing::HeldExchange;

ModelBundle package_of(const std::string& type) {
  const Vocabulary words = Vocabulary::from_entries(
      Segmentation::words, {{"the", 9}, {"dog", 8}, {"sees", 7}, {"snow", 6}, {"a", 5}});
  ModelConfig config;
  choose_network(config, type);
  config.encoder_layers = config.decoder_layers = 2;
  config.size = 8;
  if (type == "transformer") transformer_of(config).heads = 2;
  config.max_length = 16;
  config.source_words = config.target_words = words.size();
  return {"", config, make_model(config, 1), words, words};
}

class FakeTrainingHistory : public TrainingHistory {
 public:
  MetricsTail::News news() const override { return std::exchange(next, {}); }
  std::vector<int64_t> updates() const override { return saved; }
  bool running() const override { return continues; }
  std::shared_ptr<const ServedModel> after(int64_t update) const override {
    if (std::ranges::find(saved, update) == saved.end()) return nullptr;
    return std::make_shared<ServedModel>("", "en", "de", package_of("transformer"));
  }

  mutable MetricsTail::News next{
      {{"train", 5, 0, {{"loss", 2.5}, {"ppl", NAN}}}, {"valid", 10, 0, {{"bleu", 30.0}}}}};
  std::vector<int64_t> saved{0, 10};
  bool continues = true;
};

struct ServiceUnderTest {
  explicit ServiceUnderTest(ServiceOptions options = {}, BatcherOptions batches = {})
      : service(std::move(options), batches,
                {std::make_shared<ServedModel>("wide", "en", "de", package_of("transformer"), run),
                 std::make_shared<ServedModel>("deep", "de", "en", package_of("recurrent"))}) {}

  std::shared_ptr<HeldExchange> send(const std::string& method, const std::string& path,
                                     const std::string& query, const std::string& body) {
    auto held = std::make_shared<HeldExchange>();
    service.handle({method, path, query, {{"content-type", "application/json"}}, body, "::1"},
                   held);
    return held;
  }
  HttpReply ask(const std::string& method, const std::string& path, const std::string& query,
                const std::string& body) {
    const auto held = send(method, path, query, body);
    while (service.batcher().work(milliseconds(0))) continue;
    EXPECT_EQ(held->replies.size(), 1u);
    return held->replies.empty() ? HttpReply{} : held->replies.front();
  }
  Json post(const std::string& path, Json body, int status = 200) {
    if (!body.contains("source")) body["source"] = "en", body["target"] = "de";
    const HttpReply reply = ask("POST", path, "", body.dump());
    EXPECT_EQ(reply.status, status) << reply.body;
    return Json::parse(reply.body);
  }

  std::shared_ptr<FakeTrainingHistory> run = std::make_shared<FakeTrainingHistory>();
  Service service;
};

TEST(Inside, ExplainsARow) {
  ServiceUnderTest s;
  const Json reply = s.post(
      "/v1/explain",
      {{"q", "the dog sees snow"}, {"kind", "encoder"}, {"layer", 1}, {"head", 1}, {"row", 2}});
  EXPECT_EQ(reply["asking"][2], "sees");
  EXPECT_EQ(reply["pieces"], Json({"the", "dog", "sees", "snow", "</s>"}));
  const ModelBundle package = package_of("transformer");
  std::vector<int32_t> source = package.source.encode("the dog sees snow");
  source.push_back(kEos);
  const RowExplanation found =
      explain_row(package, source, std::vector<int32_t>{kEos}, {"encoder", 1, 1, 2});
  ASSERT_EQ(reply["steps"].size(), found.steps.all.size());
  for (size_t i = 0; i < found.steps.all.size(); ++i) {
    if (found.steps.all[i].name != "α_j") continue;
    for (size_t j = 0; j < 5; ++j)
      EXPECT_NEAR(reply["steps"][i]["values"][j].get<double>(), found.steps.all[i].rows[j].front(),
                  1e-9);
  }
}

TEST(Inside, RejectsMissingRowsAndLayers) {
  ServiceUnderTest s;
  const auto error = [&](Json more) -> std::string {
    Json body{{"q", "the dog"}};
    body.update(more);
    return s.post("/v1/explain", body, 400)["error"];
  };
  EXPECT_NE(error({{"row", 99}}).find("row 99: there are rows 0 to"), std::string::npos);
  EXPECT_NE(error({{"layer", 2}}).find("layers 0 to 1"), std::string::npos);
  EXPECT_NE(error({{"head", 2}}).find("heads 0 to 1"), std::string::npos);
  EXPECT_NE(error({{"kind", "other"}}).find("no such attention"), std::string::npos);
  EXPECT_NE(error({{"mask_words", {0}}}).find("cannot be explained"), std::string::npos);
  EXPECT_NE(error({{"sentence", 1}}).find("sentence 1 does not exist"), std::string::npos);
  EXPECT_NE(error({{"q", {"a", "b"}}}).find("q must be one text"), std::string::npos);
  EXPECT_NE(error({{"target", "en"}, {"source", "en"}}).find("the same"), std::string::npos);
  EXPECT_NE(error({{"source", "de"}, {"target", "en"}, {"kind", "encoder"}}).find("no such"),
            std::string::npos);
}

TEST(Inside, FindsNeighbours) {
  ServiceUnderTest s;
  const Json found = s.post("/v1/neighbours", {{"words", {"dog", "zebra", "dog"}}, {"count", 2}});
  ASSERT_EQ(found["words"].size(), 1u);
  ASSERT_EQ(found["words"][0]["neighbours"].size(), 2u);
  EXPECT_GE(found["words"][0]["neighbours"][0]["cosine"],
            found["words"][0]["neighbours"][1]["cosine"]);
  EXPECT_EQ(found["unknown"], Json({"zebra"}));
  EXPECT_EQ(found["map"].size(), 3u);
  EXPECT_EQ(s.post("/v1/neighbours", {{"words", Json::array({"zebra"})}})["map"], Json::array());
  for (const Json& bad :
       {Json{{"words", {"a"}}, {"count", 51}}, Json{{"words", {"a"}}, {"side", 1}},
        Json{{"count", 1}}, Json{{"words", std::vector<std::string>(41, "a")}},
        Json{{"words", std::vector<std::string>(20, "a")}, {"count", 20}}})
    s.post("/v1/neighbours", bad, 400);
}

TEST(Inside, GivesPositions) {
  ServiceUnderTest s;
  const auto ask = [&](const std::string& query) {
    return s.ask("GET", "/v1/positions", query, "");
  };
  const Json wide = Json::parse(ask("source=en&target=de&count=4").body);
  EXPECT_EQ(wide["rows"], 4);
  EXPECT_EQ(wide["size"], 8);
  EXPECT_EQ(wide["data"].get<std::string>().size(), 172u);  // 4 × 8 × 4 bytes
  EXPECT_EQ(Json::parse(ask("source=de&target=en").body)["kind"], "none");
  EXPECT_EQ(ask("source=en&target=de&count=0").status, 400);
  EXPECT_EQ(ask("target=de").status, 400);
}

TEST(Inside, DescribesTheTraining) {
  ServiceUnderTest s;
  const auto reply = Json::parse(s.ask("GET", "/v1/training", "source=en&target=de", "").body);
  EXPECT_EQ(reply["updates"], Json({0, 10}));
  EXPECT_EQ(reply["curves"]["train"], Json({{"loss", Json::array({Json::array({5, 2.5})})}}));
  EXPECT_EQ(s.ask("GET", "/v1/training", "source=de&target=en", "").status, 404);
  const Json pair{{"q", "the dog"}, {"translation", "a dog"}, {"update", 10}};
  const Json then = s.post("/v1/training/attention", pair);
  EXPECT_EQ(then["target"]["tokens"], Json({"a", "dog", "</s>"}));
  EXPECT_EQ(then["attention"].size(), 12u);
  EXPECT_FALSE(then.contains("steps"));
  for (const char* name : {"q", "translation", "update"}) {
    Json less = pair;
    less.erase(name);
    EXPECT_EQ(s.post("/v1/training/attention", less, 400)["error"],
              std::string("Invalid request: missing ") + name + " parameter");
  }
  Json other = pair;
  other["update"] = 7;
  s.post("/v1/training/attention", other, 404);
}

// The answer includes new data of a running training, and reports data that the run has deleted.
TEST(Inside, FollowsATraining) {
  ServiceUnderTest s;
  const auto json = [&] {
    return Json::parse(s.ask("GET", "/v1/training", "source=en&target=de", "").body);
  };
  Json first = json();
  EXPECT_EQ(json(), first) << "the data stay the same";
  EXPECT_EQ(first["running"], true);
  s.run->continues = false;
  EXPECT_EQ(json()["running"], false);
  s.run->next.lines = {{"train", 20, 0, {{"loss", 1.5}}}, {"test", 20, 0, {{"bleu", 31.0}}}};
  s.run->saved = {10, 20};
  Json more = json();
  EXPECT_EQ(more["updates"], Json({10, 20}));
  EXPECT_EQ(more["curves"]["train"]["loss"], Json::parse("[[5,2.5],[20,1.5]]"));
  EXPECT_EQ(more["curves"]["test"]["bleu"], Json::parse("[[20,31.0]]"));
  EXPECT_EQ(more["curves"]["valid"], first["curves"]["valid"]);
  s.run->next = {{{"train", 5, 0, {{"loss", 2.25}}}}, true};
  EXPECT_EQ(json()["curves"], Json::parse(R"({"train":{"loss":[[5,2.25]]}})"));

  const Json pair{{"q", "a"}, {"translation", "a"}, {"update", 0}};
  const std::string gone = s.post("/v1/training/attention", pair, 404)["error"];
  EXPECT_NE(gone.find("checkpoint.keep"), std::string::npos) << gone;
  EXPECT_NE(gone.find("/v1/training"), std::string::npos) << gone;
}

// All requests about a model, by method, path, query and body.
const std::vector<std::array<std::string, 4>> kWays = {
    {"POST", "/v1/explain", "", R"({"q":"the dog","source":"en","target":"de"})"},
    {"GET", "/v1/positions", "source=en&target=de", ""},
    {"GET", "/v1/training", "source=en&target=de", ""},
    {"POST", "/v1/neighbours", "", R"({"words":["dog"],"source":"en","target":"de"})"},
    {"POST", "/v1/training/attention", "",
     R"({"q":"a","translation":"a","update":10,"source":"en","target":"de"})"}};

TEST(Inside, EveryAnswerWaitsInTheQueue) {
  for (const auto& way : kWays) {
    ServiceUnderTest s({}, {.queue_tokens = 3 * kAloneCost});
    const auto send = [&] { return s.send(way[0], way[1], way[2], way[3]); };
    std::vector<std::shared_ptr<HeldExchange>> asked;
    for (int i = 0; i < 4; ++i) asked.push_back(send());
    ASSERT_EQ(asked[3]->replies.size(), 1u) << way[1] << ": too much is waiting";
    EXPECT_EQ(asked[3]->replies[0].status, 429);
    EXPECT_EQ(asked[3]->replies[0].headers.at(0).first, "Retry-After");
    while (s.service.batcher().work(milliseconds(0))) continue;
    EXPECT_EQ(asked[0]->replies.at(0).status, 200) << asked[0]->replies.at(0).body;
    EXPECT_EQ(s.service.batcher().waiting_cost(), 0);
  }
}

TEST(Inside, EveryAnswerHasADeadlineAndNeedsAClient) {
  for (const auto& [method, path, query, body] : kWays) {
    ServiceUnderTest late({.timeout = milliseconds(-1)});
    EXPECT_EQ(late.ask(method, path, query, body).status, 504) << path;
    ServiceUnderTest s;
    const auto held = s.send(method, path, query, body);
    held->left = true;
    while (s.service.batcher().work(milliseconds(0))) continue;
    EXPECT_TRUE(held->replies.empty()) << path;
  }
}

TEST(Inside, AtMostOneAnswerIsComputedBetweenTwoBatches) {
  for (const auto& [method, path, query, body] : kWays) {
    ServiceUnderTest s;
    std::vector<std::shared_ptr<HeldExchange>> asked;
    for (int i = 0; i < 3; ++i) asked.push_back(s.send(method, path, query, body));
    const auto translation =
        s.send("POST", "/translate", "", R"({"q":"a dog","source":"en","target":"de"})");
    for (int turn = 0; translation->replies.empty() && turn < 9; ++turn)
      s.service.batcher().work(milliseconds(0));
    EXPECT_EQ(asked[0]->replies.size(), 1u) << path;
    EXPECT_EQ(asked[1]->replies.size(), 0u) << path;
    while (s.service.batcher().work(milliseconds(0))) continue;
    EXPECT_EQ(asked[2]->replies.size(), 1u) << path;
  }
}

}  // namespace
}  // namespace fovea
