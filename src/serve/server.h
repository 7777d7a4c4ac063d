#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/http.h"

namespace fovea {

struct ServerOptions {
  std::string host = "127.0.0.1";  // an address; names are not looked up
  int port = 5000;                 // 0: any that is free
  size_t max_header = 16 << 10, max_body = 4 << 20;
  // Size lines, extensions and trailer of a body in chunks, in all. One of them alone, like a
  // header, fits into the buffer of a connection: see max_buffer().
  size_t max_framing = 64 << 10;
  size_t max_connections = 4096;
  // A client is an address, or a /64 network of IPv6. 0: no limit. Behind proxies, which open all
  // connections, there is none.
  size_t max_connections_per_client = 512;
  int64_t proxies = 0;  // one behind the other before the server: see Request::client
  std::chrono::milliseconds idle{60'000}, header{10'000}, body{30'000}, write{60'000};
  // Bytes of requests that are not handled yet, together, without small bodies; of answers that
  // wait for their clients to read them. One client may have a quarter of each.
  size_t max_bodies = 256 << 20, max_answers = 256 << 20;
  // A stream ends if its client has not read so many bytes when the next part comes, and its socket
  // takes no more.
  size_t max_backlog = 1 << 20;
  // Requests of up to so many bytes of body and query are handled on the thread of the connections,
  // larger ones by so many threads of their own, as are those for which `costly` is true.
  size_t small_request = 4 << 10, handler_threads = 2;
  std::function<bool(const Request& head)> costly = nullptr;
  // Names and addresses that Host may have; empty: any. See default_hosts().
  std::vector<std::string> hosts = {};
  // Called for each request that has a body, before that is read. A reply is sent instead.
  std::function<std::optional<Reply>(const Request& head)> screen = nullptr;
  // Called for each request that no handler sees, by any thread. 499: the client left.
  std::function<void(int status)> refused = nullptr;

  size_t max_buffer() const { return max_header + (4 << 10); }  // of a connection
};

// The names under which a browser reaches a server that listens on the loopback address `host`:
// a web page that makes its own name point there (DNS rebinding) must not use the server. Empty
// if `host` is not a loopback address.
std::vector<std::string> default_hosts(const std::string& host);

// HTTP/1.1 on one address: reads requests within their limits of size and time, hands them to the
// handler and writes what it answers. One thread of its own serves all connections; it rejects
// what is not HTTP, which the handler never sees. Other threads handle large requests.
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
