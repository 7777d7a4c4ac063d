#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/http.h"

namespace fovea::testing {

// A client that waits for ever and keeps what it is answered.
class HeldExchange : public Exchange {
 public:
  void answer(Reply reply) override { replies.push_back(std::move(reply)); }
  void begin(Reply head) override { replies.push_back(std::move(head)); }
  void send(std::string part) override { replies.back().body += part; }
  void end() override { ended = true; }
  bool gone() const override { return false; }
  std::vector<Reply> replies;
  bool ended = false;
};

}  // namespace fovea::testing
