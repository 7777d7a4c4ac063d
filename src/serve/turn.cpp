#include "serve/turn.h"

#include <utility>

namespace fovea {

Reply failed_reply() { return {.status = 500, .body = R"({"error":"Internal Server Error"})"}; }

Turn::~Turn() {
  const bool unanswered = !ended_.exchange(true);
  const bool cut = begun_ || gone_;  // nobody would understand an answer, or read it
  Wire& wire = *wire_;
  wire.post([held = std::move(wire_), unanswered, cut] {
    if (!unanswered) return;
    cut ? held->close()
        : held->write(nullptr, bytes_of(failed_reply(), held->manner()), Part::last);
  });
}

void Turn::later(std::function<void(Wire&)> act) {
  wire_->post([self = shared_from_this(), act = std::move(act)] { act(*self->wire_); });
}

void Turn::answer(Reply reply) {
  if (ended_.exchange(true)) return;
  later([this, reply = std::move(reply)](Wire& wire) {
    wire.write(this, bytes_of(reply, wire.manner()), Part::last);
  });
}

void Turn::begin(Reply head) {
  begun_ = true;
  later([this, head = std::move(head)](Wire& wire) {
    std::string bytes = head_of(head) + "Cache-Control: no-cache\r\n";
    bytes += wire.chunked() ? "Transfer-Encoding: chunked\r\n" : "";
    bytes += wire.manner().keep_alive && wire.chunked() ? "\r\n" : "Connection: close\r\n\r\n";
    wire.write(this, std::move(bytes), Part::more);
  });
}

void Turn::send(std::string part) {
  if (part.empty()) return;  // an empty chunk would be the end
  later([this, part = std::move(part)](Wire& wire) {
    wire.write(this, wire.chunked() ? chunk(part) : part, Part::more);
  });
}

void Turn::end() {
  if (ended_.exchange(true)) return;
  later([this](Wire& wire) { wire.write(this, wire.chunked() ? "0\r\n\r\n" : "", Part::last); });
}

}  // namespace fovea
