#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/http.h"

namespace fovea {

// The options of an HTTP server.
struct ServerOptions {
  std::string host = "127.0.0.1";  // an address; names are not looked up
  int port = 5000;                 // 0: any free port
  size_t max_header = 16 << 10, max_body = 4 << 20;
  // Maximum bytes of all size lines, extensions and the trailer of a chunked body together. Each of
  // them, like a header, must fit into the buffer of a connection: see max_buffer().
  size_t max_framing = 64 << 10;
  size_t max_connections = 4096;
  // A client is an IPv4 address or a /64 network of IPv6. 0 means no limit. With `proxies` there is
  // no limit, because a proxy opens the connections of all its clients.
  size_t max_connections_per_client = 512;
  int64_t proxies = 0;  // the number of chained proxies: see HttpRequest::client
  std::chrono::milliseconds idle{60'000}, header{10'000}, body{30'000}, write{60'000};
  // max_bodies: maximum bytes of all request bodies that are not handled yet, without small bodies.
  // max_answers: maximum bytes of all answers that wait for their clients to read them. One client
  // may use a quarter of each.
  size_t max_bodies = 256 << 20, max_answers = 256 << 20;
  // If at least this number of bytes of a streamed answer is unread when the next part comes, and
  // the socket of the client accepts no more bytes, the connection is closed.
  size_t max_backlog = 1 << 20;
  // The I/O thread handles requests of up to `small_request` bytes of body and query. A
  // pool of `handler_threads` handles larger requests, and requests for which `costly` is true.
  size_t small_request = 4 << 10, handler_threads = 2;
  std::function<bool(const HttpRequest& head)> costly = nullptr;
  // Allowed names and addresses in the Host header. If the list is empty, any name is allowed. See
  // default_hosts().
  std::vector<std::string> hosts = {};
  // The server calls this for each request with a body before it reads the body. If the function
  // returns a reply, the server sends this reply and does not read the body.
  std::function<std::optional<HttpReply>(const HttpRequest& head)> screen = nullptr;
  // Any thread calls this for each request that does not reach the handler. Status 499 means that
  // the client left.
  std::function<void(int status)> refused = nullptr;

  size_t max_buffer() const { return max_header + (4 << 10); }  // bytes of a connection
};

// The host names by which a browser reaches a server on the loopback address `host`. The server
// must refuse other names: the name of a web site could resolve to this address (DNS rebinding).
// The result is empty if `host` is not a loopback address.
std::vector<std::string> default_hosts(const std::string& host);

// An HTTP/1.1 server on one address. It reads requests within limits of size and time, passes them
// to the handler and writes the answers. The I/O thread serves all connections and rejects
// malformed requests. A pool of threads handles large requests.
class HttpServer {
 public:
  // Starts to listen. Throws ExitCode::usage if the address is in use, which the caller learns
  // before it loads models. The server answers requests after start().
  HttpServer(const ServerOptions& options, HttpHandler handler);
  ~HttpServer() { stop(); }

  int port() const;
  void start();
  void stop();  // closes all connections; the handler is not called after it returns

  // Calls `act` on the I/O thread for each SIGINT, SIGTERM and SIGHUP.
  void on_signal(std::function<void(int signal)> act);

  // Accepts no new connections, and no new requests on open connections. Still answers the requests
  // that it received. A client that has begun to send a request has two seconds to complete it.
  void drain();
  void cut();  // closes every connection; to handlers it appears that all clients left
  size_t connections() const;

  struct State;  // shared with the connections

 private:
  std::shared_ptr<State> state_;
};

}  // namespace fovea
