#include "http/exchange.h"

#include <fmt/format.h>

#include <utility>

namespace fovea {

HttpReply failed_reply() { return {.status = 500, .body = R"({"error":"Internal Server Error"})"}; }

ConnectionExchange::~ConnectionExchange() {
  const bool unanswered = !ended_.exchange(true);
  const bool cut = begun_ || gone_;  // the client has left, or would misinterpret an answer
  ConnectionWriter& writer = *writer_;
  writer.post([owner = std::move(writer_), unanswered, cut] {
    if (!unanswered) return;
    cut ? owner->close() : owner->answer(nullptr, failed_reply());
  });
}

void ConnectionExchange::later(std::function<void(ConnectionWriter&)> act) {
  writer_->post([self = shared_from_this(), act = std::move(act)] { act(*self->writer_); });
}

void ConnectionExchange::release_body() {
  later([this](ConnectionWriter& writer) { writer.release_body(this); });
}

void ConnectionExchange::answer(HttpReply reply) {
  if (ended_.exchange(true)) return;
  later([this, shared = std::make_shared<HttpReply>(std::move(reply))](ConnectionWriter& writer) {
    writer.answer(this, std::move(*shared));
  });
}

// The thread that produces an answer also formats its parts, because the I/O thread must not copy
// large parts.
void ConnectionExchange::begin(HttpReply head) {
  begun_ = true;
  std::string bytes = head_of(head) + "Cache-Control: no-cache\r\n";
  if (chunked_) bytes += "Transfer-Encoding: chunked\r\n";
  later([this, bytes = std::move(bytes)](ConnectionWriter& writer) {
    const bool stays = chunked_ && writer.after_answer() == ConnectionReuse::keep_alive;
    writer.write(this, bytes + (stays ? "\r\n" : "Connection: close\r\n\r\n"), AnswerPart::more);
  });
}

void ConnectionExchange::send(std::string part) {
  if (part.empty()) return;  // an empty chunk would end the answer
  if (chunked_) part = fmt::format("{:x}\r\n{}\r\n", part.size(), part);
  {
    constexpr size_t kMaxCombined = 16 << 10;  // larger parts would count as unread for long
    const std::lock_guard hold(mutex_);
    const bool first = parts_.empty();
    if (!first && parts_.back().size() + part.size() <= kMaxCombined)
      parts_.back() += part;
    else
      parts_.push_back(std::move(part));
    if (!first) return;  // it is written together with the previous parts
  }
  later([this](ConnectionWriter& writer) {
    std::vector<std::string> parts;
    {
      const std::lock_guard hold(mutex_);
      parts.swap(parts_);
    }
    for (std::string& each : parts) writer.write(this, std::move(each), AnswerPart::more);
  });
}

void ConnectionExchange::end() {
  if (ended_.exchange(true)) return;
  later([this](ConnectionWriter& writer) {
    writer.write(this, chunked_ ? "0\r\n\r\n" : "", AnswerPart::last);
  });
}

}  // namespace fovea
