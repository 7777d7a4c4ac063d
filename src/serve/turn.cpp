#include "serve/turn.h"

#include <fmt/format.h>

#include <utility>

namespace fovea {

Reply failed_reply() { return {.status = 500, .body = R"({"error":"Internal Server Error"})"}; }

Turn::~Turn() {
  const bool unanswered = !ended_.exchange(true);
  const bool cut = begun_ || gone_;  // nobody would understand an answer, or read it
  Wire& wire = *wire_;
  wire.post([held = std::move(wire_), unanswered, cut] {
    if (!unanswered) return;
    cut ? held->close() : held->answer(nullptr, failed_reply());
  });
}

void Turn::later(std::function<void(Wire&)> act) {
  wire_->post([self = shared_from_this(), act = std::move(act)] { act(*self->wire_); });
}

void Turn::release_body() {
  later([this](Wire& wire) { wire.release_body(this); });
}

void Turn::answer(Reply reply) {
  if (ended_.exchange(true)) return;
  later([this, held = std::make_shared<Reply>(std::move(reply))](Wire& wire) {
    wire.answer(this, std::move(*held));
  });
}

// Threads that produce an answer format its parts: the server's thread must not copy large ones.
void Turn::begin(Reply head) {
  begun_ = true;
  std::string bytes = head_of(head) + "Cache-Control: no-cache\r\n";
  if (chunked_) bytes += "Transfer-Encoding: chunked\r\n";
  later([this, bytes = std::move(bytes)](Wire& wire) {
    const bool stays = chunked_ && wire.after_answer() == Connected::keep_alive;
    wire.write(this, bytes + (stays ? "\r\n" : "Connection: close\r\n\r\n"), Part::more);
  });
}

void Turn::send(std::string part) {
  if (part.empty()) return;  // an empty chunk would be the end
  if (chunked_) part = fmt::format("{:x}\r\n{}\r\n", part.size(), part);
  {
    constexpr size_t kTogether = 16 << 10;  // larger ones would count as unread for long
    const std::lock_guard hold(mutex_);
    const bool first = parts_.empty();
    if (!first && parts_.back().size() + part.size() <= kTogether)
      parts_.back() += part;
    else
      parts_.push_back(std::move(part));
    if (!first) return;  // written with those before it
  }
  later([this](Wire& wire) {
    std::vector<std::string> parts;
    {
      const std::lock_guard hold(mutex_);
      parts.swap(parts_);
    }
    for (std::string& each : parts) wire.write(this, std::move(each), Part::more);
  });
}

void Turn::end() {
  if (ended_.exchange(true)) return;
  later([this](Wire& wire) { wire.write(this, chunked_ ? "0\r\n\r\n" : "", Part::last); });
}

}  // namespace fovea
