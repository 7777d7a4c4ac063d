#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "serve/http.h"

namespace fovea {

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address; names are not looked up
  int port = 5000;                 // 0: any that is free
  size_t max_header = 16 << 10, max_body = 4 << 20, max_connections = 4096;
  std::chrono::milliseconds idle{60'000}, header{10'000}, body{30'000}, write{60'000};
  size_t max_bodies = 256 << 20;  // of requests that are being read, together; small ones are free
  // Asked about each request that has a body, before that is read: an answer is given instead.
  std::function<std::optional<Reply>(const Request& head)> screen = nullptr;
  std::function<void(int status)> refused = nullptr;  // told of each that no handler sees
};

// HTTP/1.1 on one address: reads requests within their limits of size and time, hands them to the
// handler and writes what it answers. All connections are served by one thread of its own; what
// is not HTTP is refused there and never seen by the handler.
class Server {
 public:
  // Listens at once, so that an address in use is known before models are loaded: Exit::usage.
  // Nothing is answered before start().
  Server(const ServerOptions& options, Handler handler);
  ~Server() { stop(); }

  int port() const;
  void start();
  void stop();  // cuts every connection; the handler is not called any more

  // Calls `act` on the server's thread for each SIGINT, SIGTERM and SIGHUP from now on.
  void on_signal(std::function<void(int signal)> act);

  // No new connections, no new requests on old ones; what was asked is still answered. A request
  // that has begun has two seconds to come to its end.
  void drain();
  void cut();  // closes every connection; for handlers all clients have left
  size_t connections() const;

  struct State;  // what connections share

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fovea
