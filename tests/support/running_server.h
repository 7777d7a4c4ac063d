#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/server.h"

// A server in this process, and clients that send it any bytes.
namespace fovea {

using std::chrono::milliseconds;

// A client that sends any bytes.
class Client {
 public:
  // `from` is any address of the loopback network; the server counts each as a client. `window`:
  // the size of the receive buffer in bytes; 0: the system's default.
  explicit Client(int port, const char* from = "127.0.0.1", int window = 0)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (window > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &window, sizeof window);
    sockaddr_in own{};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    bind(fd_, reinterpret_cast<sockaddr*>(&own), sizeof own);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    inet_pton(AF_INET, "127.0.0.1", &address.sin_addr);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(fd_); }
  bool connected() const { return connected_; }
  Client& send(std::string_view bytes) {
    taken_of(bytes);
    return *this;
  }
  // Returns the number of sent bytes.
  size_t taken_of(std::string_view bytes) {
    size_t taken = 0;
    while (taken < bytes.size()) {
      const ssize_t sent = ::send(fd_, bytes.data() + taken, bytes.size() - taken, MSG_NOSIGNAL);
      if (sent <= 0) break;
      taken += static_cast<size_t>(sent);
    }
    return taken;
  }
  Client& end_sending() {
    shutdown(fd_, SHUT_WR);
    return *this;
  }
  // Reads until the server closes the connection, or until `mark` is received.
  std::string read(std::string_view mark = "\x01none") {
    std::string all;
    char buffer[4096];
    for (size_t seen = 0; all.find(mark, seen) == std::string::npos;) {
      seen = all.size() - std::min(all.size(), mark.size());
      const ssize_t got = recv(fd_, buffer, sizeof buffer, 0);
      if (got < 0) return all + "[no end]";
      if (got == 0) break;
      all.append(buffer, static_cast<size_t>(got));
    }
    return all;
  }

 private:
  int fd_;
  bool connected_ = false;
};

inline int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::stoi(reply.substr(9, 3)) : 0;
}

inline ServerOptions small(milliseconds patience = std::chrono::seconds(20)) {
  ServerOptions options;
  options.port = 0;
  options.max_body = 10'000;
  options.max_header = 4096;
  options.idle = options.header = options.body = patience;
  options.write = milliseconds(1000);
  return options;
}

inline void echo(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
  exchange->answer(
      {.body = request.method + " " + request.path + "?" + request.query + " " + request.body,
       .type = "text/plain"});
}

struct RunningServer {
  explicit RunningServer(HttpHandler handler = echo, ServerOptions options = small())
      : server(options, std::move(handler)) {
    server.start();
  }
  int port() const { return server.port(); }
  std::string ask(const std::string& bytes) { return Client(port()).send(bytes).read(); }
  HttpServer server;
};

inline bool wait_for(const std::function<bool()>& done) {
  for (int i = 0; i < 2000 && !done(); ++i) std::this_thread::sleep_for(milliseconds(10));
  return done();
}

// A server whose handler stores the exchanges instead of answering them.
struct HoldingServer {
  explicit HoldingServer(ServerOptions options = small())
      : running(
            [this](HttpRequest, std::shared_ptr<HttpExchange> exchange) {
              const std::lock_guard hold(mutex);
              held.push_back(std::move(exchange));
            },
            std::move(options)) {}
  size_t count() {
    const std::lock_guard hold(mutex);
    return held.size();
  }
  bool wait_for_count(size_t wanted) {
    return wait_for([&] { return count() == wanted; });
  }
  int port() const { return running.port(); }

  std::mutex mutex;
  std::vector<std::shared_ptr<HttpExchange>> held;
  RunningServer running;
};

inline constexpr const char* kGet = "GET /x?y=1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

}  // namespace fovea
