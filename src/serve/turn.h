#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "serve/http.h"

namespace fovea {

enum class Part { more, last };  // of an answer

// A connection as the answers on it see it. All but post() is for the server's thread alone.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void post(std::function<void()> act) = 0;  // has it called on the server's thread
  // Nothing happens where it is another's turn, or the answer has ended.
  virtual void write(const Exchange* turn, std::string bytes, Part part) = 0;
  virtual void close() = 0;
  virtual Manner manner() const = 0;
  virtual bool chunked() const = 0;  // whether the client knows answers in chunks
};

// One request and its answer on a connection.
class Turn : public Exchange, public std::enable_shared_from_this<Turn> {
 public:
  explicit Turn(std::shared_ptr<Wire> wire) : wire_(std::move(wire)) {}
  ~Turn() override;  // on whatever thread: the connection itself is let go on the server's

  void answer(Reply reply) override;
  void begin(Reply head) override;
  void send(std::string part) override;
  void end() override;
  bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  void leave() { gone_ = true; }
  bool begun() const { return begun_; }

 private:
  // Calls act(wire) on the server's thread.
  void later(std::function<void(Wire& wire)> act);

  std::shared_ptr<Wire> wire_;
  std::atomic<bool> ended_{false}, begun_{false}, gone_{false};
};

Reply failed_reply();  // 500

}  // namespace fovea
