#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "support/service_under_test.h"

namespace fovea {
namespace {

using testing::HeldExchange;
using testing::Json;
using testing::options;
using testing::ServiceUnderTest;

std::string header_of(const HttpReply& reply, const std::string& name) {
  for (const auto& [known, value] : reply.headers)
    if (known == name) return value;
  return "";
}

TEST(Service, RequiresKeysAndEnforcesLimits) {
  ServiceOptions o = options();
  o.access.keys = ApiKeys::parse("good 3\nfree 0\n", "keys", 0);
  o.access.keys_required = true;
  ServiceUnderTest s(o);
  const Json question = {{"q", "x"}, {"source", "en"}, {"target", "de"}};
  const auto ask = [&](const std::string& key, const char* field = "api_key") {
    Json with = question;
    if (!key.empty()) with[field] = key;
    return s.ask("POST", "/translate", with.dump());
  };
  EXPECT_EQ(ask("").body, R"({"error":"Please contact the server operator to get an API key"})");
  EXPECT_EQ(ask("goo").status, 403);
  EXPECT_EQ(ask("bad").body, R"({"error":"Invalid API key"})");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(ask("good", i == 1 ? "apiKey" : "api_key").status, 200);
  const HttpReply slow = ask("good");
  EXPECT_EQ(slow.status, 429);
  EXPECT_EQ(slow.body, R"({"error":"Slowdown: 3 per 1 minute"})");
  EXPECT_TRUE(std::ranges::any_of(
      slow.headers, [](const auto& h) { return h.first == "Retry-After" && h.second == "20"; }));
  EXPECT_EQ(ask("free").status, 200) << "another key has its own limit";
  const Headers bearer = {{"authorization", "Bearer free"}};
  EXPECT_EQ(s.ask("POST", "/translate", question.dump(), "application/json", bearer).status, 200);
  for (const char* open : {"/health", "/livez", "/readyz", "/languages", "/frontend/settings"})
    EXPECT_EQ(s.ask("GET", open).status, 200) << open;
  for (const char* closed :
       {"/detect", "/suggest", "/translate_file", "/v2/translate", "/v1/translate/stream"})
    EXPECT_EQ(s.ask("POST", closed, R"({"q":"x","text":"x"})").status, 400) << closed;
  EXPECT_EQ(s.ask("GET", "/metrics").status, 400);
}

TEST(Service, CountsByTheAddressThatTrustedProxiesName) {
  const auto client = [](int64_t proxies, const Headers& headers) {
    return HttpRequest{"GET", "/", "", headers, "", "::1"}.client(proxies);
  };
  const Headers chain = {{"x-forwarded-for", "6.6.6.6, 1.2.3.4"}, {"x-forwarded-for", "10.0.0.1"}};
  EXPECT_EQ(client(0, chain), "::1");
  EXPECT_EQ(client(1, chain), "10.0.0.1");
  EXPECT_EQ(client(2, chain), "1.2.3.4");
  EXPECT_EQ(client(3, chain), "6.6.6.6");
  EXPECT_EQ(client(4, chain), "::1") << "a proxy was bypassed";
  EXPECT_EQ(client(1, {}), "::1");
  EXPECT_EQ(client(1, {{"x-forwarded-for", "a,"}}), "");
  EXPECT_EQ(client(1, {{"x-forwarded-for", std::string(500, 'x')}}), std::string(64, 'x'));

  ServiceOptions o = options();
  o.access.requests_per_minute = 1;
  o.access.proxies = 1;
  ServiceUnderTest s(o);
  const auto ask = [&](const std::string& from) {
    return s.ask("POST", "/detect", R"({"q":"x"})", "application/json", {{"x-forwarded-for", from}})
        .status;
  };
  EXPECT_EQ(ask("1.1.1.1"), 200);
  EXPECT_EQ(ask("2.2.2.2"), 200);
  EXPECT_EQ(ask("9.9.9.9, 1.1.1.1"), 429) << "a client cannot name itself otherwise";
  EXPECT_EQ(ask("2001:db8::1"), 200);
  EXPECT_EQ(ask("2001:db8::2"), 429) << "a /64 network is one client";
  EXPECT_EQ(ask("2001:db8:0:1::1"), 200);
}

// The requests of one address or key fill only their share of the queue.
TEST(Service, AFloodLeavesRoomForOthers) {
  ServiceOptions o = options();
  o.access.keys = ApiKeys::parse("flood\nother\n", "keys", 0);
  ServiceUnderTest s(o, {.queue_tokens = 200});
  std::vector<std::shared_ptr<HeldExchange>> held;
  const auto ask = [&](const std::string& address, const std::string& key, int beam = 4) {
    held.push_back(std::make_shared<HeldExchange>());
    s.service.handle(HttpRequest{"POST",
                                 "/translate",
                                 "q=" + std::string(38, 'x') + "&source=en&target=de&api_key=" +
                                     key + "&beam_size=" + std::to_string(beam),
                                 {},
                                 "",
                                 address},
                     held.back());
    return held.back()->replies.empty();
  };
  int accepted = 0;
  while (ask("192.0.2.1", "") && accepted < 1000) ++accepted;
  EXPECT_EQ(accepted, 18) << "of 11 pieces each";
  EXPECT_EQ(held.back()->replies.at(0).status, 429);
  EXPECT_TRUE(ask("192.0.2.2", "")) << "another address";
  EXPECT_TRUE(ask("192.0.2.1", "other")) << "a key at the same address";
  accepted = 0;
  while (ask("192.0.2.3", "flood", 16) && accepted < 1000) ++accepted;
  EXPECT_EQ(accepted, 4) << "beam 16 costs four times as much";
  EXPECT_FALSE(ask("192.0.2.4", "flood", 16)) << "the same key elsewhere";
  EXPECT_EQ(s.ask("GET", "/readyz").status, 200) << "others are served";
}

TEST(Service, SlowsDownWrongKeys) {
  ServiceOptions o = options();
  o.access.keys = ApiKeys::parse("good\nunused\n", "keys", 0);
  ServiceUnderTest s(o);
  const auto head = [](const std::string& key, const std::string& address) {
    return HttpRequest{"POST", "/translate", "", {{"authorization", "Bearer " + key}}, "", address};
  };
  const auto status = [&](const std::string& key, const std::string& address = "::1") {
    const auto refused = s.service.screen(head(key, address));
    return refused ? refused->status : 200;
  };
  EXPECT_EQ(status("good"), 200);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(status("wrong"), 403) << i;
  const Json body = {{"q", "x"}, {"source", "en"}, {"target", "de"}, {"api_key", "wrong"}};
  for (int i = 0; i < 5; ++i)  // keys in bodies and in headers count together
    EXPECT_EQ(s.ask("POST", "/translate", body.dump()).status, 403) << i;
  const HttpReply slow = s.ask("POST", "/translate", body.dump());
  EXPECT_EQ(slow.status, 429);
  EXPECT_EQ(header_of(slow, "Retry-After"), "6");
  EXPECT_EQ(status("wrong"), 429);
  EXPECT_EQ(status("unused"), 429) << "a correct guess has to wait, too";
  EXPECT_EQ(status("good"), 200) << "it was accepted from here before";
  EXPECT_EQ(status("wrong", "::2"), 429) << "the same /64 network";
  EXPECT_EQ(status("wrong", "2001:db8::1"), 403);
}

TEST(Service, KeysCanBeReplaced) {
  ServiceOptions o = options();
  o.access.keys = ApiKeys::parse("old\n", "keys", 0);
  o.access.keys_required = true;
  ServiceUnderTest s(o);
  const auto status = [&](const std::string& key) {
    const Json body = {{"q", "x"}, {"source", "en"}, {"target", "de"}, {"api_key", key}};
    return s.ask("POST", "/translate", body.dump()).status;
  };
  EXPECT_EQ(status("old"), 200);
  EXPECT_EQ(status("new"), 403);
  s.service.replace_keys(ApiKeys::parse("new\n", "keys", 0));
  EXPECT_EQ(status("old"), 403);
  EXPECT_EQ(status("new"), 200);
}

TEST(Service, MetricsNeedAKeyAndHaveNoLimit) {
  ServiceOptions o = options();
  o.access.requests_per_minute = 1;
  {
    ServiceUnderTest s(o);
    for (int i = 0; i < 5; ++i) EXPECT_EQ(s.ask("GET", "/metrics").status, 200) << i;
  }
  o.access.keys = ApiKeys::parse("good 1\n", "keys", 0);
  ServiceUnderTest s(o);  // keys are optional
  EXPECT_EQ(s.ask("POST", "/detect", R"({"q":"x"})").status, 200);
  EXPECT_EQ(s.ask("GET", "/metrics").status, 400);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(s.ask("GET", "/metrics?api_key=good").status, 200) << i;
  EXPECT_EQ(s.ask("GET", "/metrics?api_key=bad").status, 403);
}

TEST(Service, CountsDurationsByEndpointAndModel) {
  ServiceUnderTest s;
  const Json body = {{"q", "x"}, {"source", "en"}, {"target", "de"}};
  EXPECT_EQ(s.ask("POST", "/translate", body.dump()).status, 200);
  EXPECT_EQ(s.ask("GET", "/no/such/page").status, 404);
  EXPECT_EQ(s.ask("GET", "/health").status, 200);
  const std::string text = s.ask("GET", "/metrics").body;
  const std::string count = "fovea_http_request_duration_seconds_count";
  for (const char* labels : {R"({endpoint="/translate",model="echo"} 1)", R"({endpoint="other"} 1)",
                             R"({endpoint="/health"} 1)"})
    EXPECT_NE(text.find(count + labels), std::string::npos) << labels;
  EXPECT_EQ(text.find("no/such"), std::string::npos) << "clients cannot add labels";
}

TEST(Service, RepliesHaveTheIdentifierOfTheRequest) {
  ServiceUnderTest s;
  const auto id = [&](const std::string& given) {
    const Headers headers = {{"x-request-id", given}};
    return header_of(s.ask("GET", "/health", "", "text/plain", headers), "X-Request-Id");
  };
  EXPECT_EQ(id("Trace-7_a.b"), "Trace-7_a.b");
  EXPECT_EQ(id(std::string(64, 'x')), std::string(64, 'x'));
  for (const std::string& wrong : {std::string(), std::string("a b"), std::string("a\"b"),
                                   std::string(65, 'x'), std::string("\xC3\xA4")}) {
    EXPECT_EQ(id(wrong).size(), 36u) << wrong;
    EXPECT_NE(id(wrong), id(wrong)) << "random";
  }
  const Json body = {{"q", "x"}, {"source", "en"}, {"target", "de"}};
  for (const char* path : {"/translate", "/v1/translate/stream", "/no/such/page"})
    EXPECT_EQ(
        header_of(s.ask("POST", path, body.dump(), "application/json", {{"x-request-id", "mine"}}),
                  "X-Request-Id"),
        "mine")
        << path;
}

TEST(Service, RefusesRequestsIfTheQueueIsFull) {
  ServiceUnderTest s(options(), {.queue_tokens = 10});
  const auto held = std::make_shared<HeldExchange>(), refused = std::make_shared<HeldExchange>();
  const auto question = [](const std::string& text) {
    return HttpRequest{"POST", "/translate", "q=" + text + "&source=en&target=de", {}, "", "::1"};
  };
  s.service.handle(question(std::string(90, 'x')), held);
  s.service.handle(question("y"), refused);
  EXPECT_EQ(held->replies.size(), 0u);
  ASSERT_EQ(refused->replies.size(), 1u);
  EXPECT_EQ(refused->replies[0].status, 429);
  EXPECT_EQ(s.ask("GET", "/health").status, 200);
  EXPECT_EQ(held->replies.at(0).status, 200);
}

// The description of an endpoint that needs a key has the errors for missing, wrong and limited
// keys.
TEST(Service, DescribesTheErrorsOfKeys) {
  ServiceOptions o = options();
  o.access.keys = ApiKeys::parse("good\n", "keys", 0);
  o.access.keys_required = true;
  ServiceUnderTest s(o);
  const Json api = Json::parse(s.ask("GET", "/openapi.json").body);
  size_t closed = 0;
  for (const auto& [path, methods] : api["paths"].items())
    for (const auto& [method, operation] : methods.items()) {
      const HttpReply reply = s.ask(method == "get" ? "GET" : "POST", path, "{}");
      const bool needs_key = reply.body.find("to get an API key") != std::string::npos;
      EXPECT_EQ(operation.contains("security"), needs_key) << path;
      for (const char* status : {"413", "503"})
        EXPECT_TRUE(method == "get" || operation["responses"].contains(status)) << path;
      if (!needs_key) continue;
      ++closed;
      for (const char* status : {"400", "403", "429"})
        EXPECT_TRUE(operation["responses"].contains(status)) << path << " " << status;
    }
  EXPECT_EQ(closed, 13u) << "endpoints with a key";
  for (const char* name : {"bearer", "field"})
    EXPECT_TRUE(api["components"]["securitySchemes"].contains(name));
  for (const char* status : {"429", "500", "504"})
    EXPECT_TRUE(api["paths"]["/translate_file"]["post"]["responses"].contains(status)) << status;
}

TEST(Service, ChecksTheKeyInAHeaderBeforeItReadsTheBody) {
  ServiceOptions o = options();
  const auto head = [](const std::string& path, const std::string& authorization) {
    return HttpRequest{"POST", path, "", {{"authorization", authorization}}};
  };
  EXPECT_FALSE(ServiceUnderTest(o).service.screen(head("/translate", "Bearer bad")));
  o.access.keys = ApiKeys::parse("good\n", "keys", 0);
  ServiceUnderTest s(o);
  for (const char* fine : {"Bearer good", "", "Basic bad"})
    EXPECT_FALSE(s.service.screen(head("/translate", fine))) << fine;
  EXPECT_FALSE(s.service.screen(head("/languages", "Bearer bad")));
  const auto refused = s.service.screen(head("/v2/translate", "DeepL-Auth-Key bad"));
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 403);
  EXPECT_EQ(refused->body, R"({"message":"Invalid API key"})");
}

TEST(Service, AttentionHasALimitOfCharacters) {
  ServiceOptions o = options();
  o.limits.char_limit = 0;
  ServiceUnderTest s(o);
  const Json asked = {{"source", "en"}, {"target", "de"}, {"attention", true}};
  Json fits = asked, too_long = asked;
  fits["q"] = {"One two. Three.", "Four."};
  const Json reply = s.post("/translate", fits);
  ASSERT_EQ(reply["attention"].size(), 2u);
  ASSERT_EQ(reply["attention"][0].size(), 2u);
  EXPECT_EQ(reply["attention"][0][1]["source"]["text"], "Three.");
  EXPECT_EQ(reply["attention"][1][0]["source"]["text"], "Four.");
  too_long["q"] = std::string(10'001, 'x');
  EXPECT_NE(s.error(too_long).find("attention is available for at most 10000 characters"),
            std::string::npos);
}

TEST(Service, AttentionOfAnAnswerIsBounded) {
  ServiceOptions generous = options();
  generous.limits.char_limit = 0;
  ServiceUnderTest s(generous);
  const auto asked = [](size_t sentences) {
    Json body = {{"q", ""}, {"source", "en"}, {"target", "de"}, {"attention", true}};
    std::string text;
    for (size_t i = 0; i < sentences; ++i) text += "A" + std::string(380, 'a') + ". ";
    body["q"] = text;
    return body;
  };
  const HttpReply some = s.ask("POST", "/translate", asked(8).dump());
  EXPECT_EQ(some.status, 200) << some.body.substr(0, 200);
  EXPECT_GT(some.body.size(), size_t{2} << 20);
  EXPECT_NE(s.error(asked(26)).find("takes more than 8 MiB"), std::string::npos);
  const HttpReply stream = s.ask("POST", "/v1/translate/stream", asked(26).dump());
  EXPECT_NE(stream.body.find("event: error"), std::string::npos);
  EXPECT_EQ(stream.body.find("event: done"), std::string::npos);
  EXPECT_LT(stream.body.size(), size_t{1} << 20);
}

}  // namespace
}  // namespace fovea
