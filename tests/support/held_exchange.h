#pragma once

#include <string>
#include <utility>
#include <vector>

#include "http/http.h"

namespace fovea::testing {

// An exchange that stores the answer. The client has left if the test sets `left`.
class HeldExchange : public HttpExchange {
 public:
  void answer(HttpReply reply) override { replies.push_back(std::move(reply)); }
  void begin(HttpReply head) override { replies.push_back(std::move(head)); }
  void send(std::string part) override { replies.back().body += part; }
  void end() override { ended = true; }
  bool gone() const override { return left; }
  std::vector<HttpReply> replies;
  bool ended = false, left = false;
};

}  // namespace fovea::testing
