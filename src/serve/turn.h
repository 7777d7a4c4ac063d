#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "serve/http.h"

namespace fovea {

enum class Part { more, last };  // of an answer

// A connection as the answers on it see it. All but post() is for the server's thread alone.
class Wire {
 public:
  virtual ~Wire() = default;
  virtual void post(std::function<void()> act) = 0;  // calls it on the server's thread
  // Parts of an answer, or all of it. They do nothing if the request of `turn` is not the current
  // one (null: whichever it is), or if its answer has ended.
  virtual void write(const Exchange* turn, std::string bytes, Part part) = 0;
  virtual void answer(const Exchange* turn, Reply reply) = 0;
  virtual void release_body(const Exchange* turn) = 0;  // it no longer counts in limits
  virtual void close() = 0;
  virtual Connected after_answer() const = 0;
  virtual bool chunked() const = 0;  // whether the client understands chunks
};

// One request and its answer on a connection.
class Turn : public Exchange, public std::enable_shared_from_this<Turn> {
 public:
  explicit Turn(std::shared_ptr<Wire> wire) : wire_(std::move(wire)), chunked_(wire_->chunked()) {}
  ~Turn() override;  // on any thread: the server's thread releases the connection

  void answer(Reply reply) override;
  void begin(Reply head) override;
  void send(std::string part) override;
  void end() override;
  bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  void leave() { gone_ = true; }
  bool begun() const { return begun_; }
  void release_body();

 private:
  // Calls act(wire) on the server's thread.
  void later(std::function<void(Wire& wire)> act);

  std::shared_ptr<Wire> wire_;
  const bool chunked_;
  std::mutex mutex_;
  std::vector<std::string> parts_;  // that the server's thread is to write; mutex_ guards them
  std::atomic<bool> ended_{false}, begun_{false}, gone_{false};
};

Reply failed_reply();  // 500

}  // namespace fovea
