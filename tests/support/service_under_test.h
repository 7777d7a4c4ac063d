#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "serve/service.h"
#include "support/echo_engine.h"
#include "support/held_exchange.h"

namespace fovea::testing {

using Json = nlohmann::ordered_json;

// Small limits, so that tests reach them.
inline ServiceOptions options() {
  ServiceOptions o;
  o.limits.char_limit = 100;
  o.limits.text_limit = 10;
  return o;
}

// A service with models that copy their input, and functions that send requests to it.
struct ServiceUnderTest {
  explicit ServiceUnderTest(ServiceOptions o = options(), BatcherOptions batches = {})
      : service(std::move(o), batches, {echo_model("en", "de"), echo_model("de", "en")}) {}

  HttpReply ask(const std::string& method, const std::string& path, const std::string& body = "",
                const std::string& type = "application/json", Headers headers = {}) {
    const size_t question = std::min(path.find('?'), path.size());
    headers.emplace_back("content-type", type);
    headers.emplace_back("host", "h:5000");
    HttpRequest request{method,
                        path.substr(0, question),
                        question < path.size() ? path.substr(question + 1) : "",
                        headers,
                        body,
                        "::1"};
    const auto held = std::make_shared<HeldExchange>();
    service.handle(std::move(request), held);
    while (service.batcher().work(std::chrono::milliseconds(0))) continue;
    EXPECT_EQ(held->replies.size(), 1u) << "one answer per request";
    return held->replies.empty() ? HttpReply{} : held->replies.front();
  }
  Json post(const std::string& path, const Json& body) {
    return Json::parse(ask("POST", path, body.dump()).body);
  }
  std::string error(const Json& body) {
    const HttpReply reply = ask("POST", "/translate", body.dump());
    EXPECT_EQ(reply.status, 400) << reply.body;
    return Json::parse(reply.body).value("error", "");
  }

  Service service;
};

}  // namespace fovea::testing
