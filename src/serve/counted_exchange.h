#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <string>

#include "http/http.h"
#include "serve/service_metrics.h"

namespace fovea {

// The description of a request for metrics and the log: never a key, an address or part of a text.
struct RequestNote {
  std::string id, method, path;  // path: the route, or the printable path of an unknown one
  std::string endpoint;          // the route, or "other"
  size_t bytes = 0;              // of the request body
  bool logged = false;           // whether the log has a line for it
};

// Returns the header X-Request-Id of the request if it is valid, else a random identifier. A valid
// identifier has 1 to 64 letters, digits, '-', '_' and '.'.
std::string request_id(const HttpRequest& request);

// An exchange that counts the request in the metrics, writes the log line when it is answered, and
// adds X-Request-Id to the reply. Thread-safe like HttpExchange. The metrics must outlive it.
class CountedExchange : public HttpExchange {
 public:
  CountedExchange(std::shared_ptr<HttpExchange> inner, ServiceMetrics& metrics, RequestNote note);
  ~CountedExchange() override { end_with(inner_->gone() ? 499 : 500); }

  // Sets the name of the model for metrics and the log. Call it before another thread may answer.
  void set_model(const std::string& name) { model_ = name; }

  void answer(HttpReply reply) override;
  void begin(HttpReply head) override;
  void send(std::string part) override;
  void end() override;
  bool gone() const override { return inner_->gone(); }

 private:
  using Clock = std::chrono::steady_clock;
  void end_with(int status);
  void write_line(int status, double seconds) const;

  std::shared_ptr<HttpExchange> inner_;
  ServiceMetrics& metrics_;
  RequestNote note_;
  std::string model_;
  size_t sent_ = 0;  // bytes of the body
  std::atomic<bool> ended_{false};
  Clock::time_point begin_ = Clock::now();
};

}  // namespace fovea
