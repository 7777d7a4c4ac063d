#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "http/http.h"

namespace fovea {

// Whether more parts of the answer follow.
enum class AnswerPart { more, last };

// The interface of a connection for writing answers. Only the I/O thread may call it, except
// post().
class ConnectionWriter {
 public:
  virtual ~ConnectionWriter() = default;
  virtual void post(std::function<void()> act) = 0;  // calls act() on the I/O thread
  // These functions write a part of an answer, or a complete answer. They do nothing if `exchange`
  // is not that of the current request (null: any request), or if its answer has ended.
  virtual void write(const HttpExchange* exchange, std::string bytes, AnswerPart part) = 0;
  virtual void answer(const HttpExchange* exchange, HttpReply reply) = 0;
  virtual void release_body(
      const HttpExchange* exchange) = 0;  // the body no longer counts against limits
  virtual void close() = 0;
  virtual ConnectionReuse after_answer() const = 0;
  virtual bool chunked() const = 0;  // whether the client supports chunked answers
};

// The exchange of one request and its answer on a connection. Thread-safe.
class ConnectionExchange : public HttpExchange,
                           public std::enable_shared_from_this<ConnectionExchange> {
 public:
  explicit ConnectionExchange(std::shared_ptr<ConnectionWriter> writer)
      : writer_(std::move(writer)), chunked_(writer_->chunked()) {}
  ~ConnectionExchange() override;  // on any thread; the I/O thread releases the connection

  void answer(HttpReply reply) override;
  void begin(HttpReply head) override;
  void send(std::string part) override;
  void end() override;
  bool gone() const override { return gone_.load(std::memory_order_relaxed); }
  void leave() { gone_ = true; }
  bool begun() const { return begun_; }
  void release_body();

 private:
  // Calls act(writer) on the I/O thread.
  void later(std::function<void(ConnectionWriter& writer)> act);

  std::shared_ptr<ConnectionWriter> writer_;
  const bool chunked_;
  std::mutex mutex_;
  std::vector<std::string> parts_;  // to be written by the I/O thread; guarded by mutex_
  std::atomic<bool> ended_{false}, begun_{false}, gone_{false};
};

HttpReply failed_reply();  // 500

}  // namespace fovea
