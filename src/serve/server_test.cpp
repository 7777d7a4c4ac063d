#include "serve/server.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "temporary.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

// A client that writes bytes, whatever they are.
class Client {
 public:
  explicit Client(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
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
    while (!bytes.empty()) {
      const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) break;
      bytes.remove_prefix(static_cast<size_t>(sent));
    }
    return *this;
  }
  // All that comes until the server closes, or until `mark` came.
  std::string read(std::string_view mark = "\x01none") {
    std::string all;
    char buffer[4096];
    while (all.find(mark) == std::string::npos) {
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

int status_of(const std::string& reply) {
  return reply.starts_with("HTTP/1.1 ") ? std::stoi(reply.substr(9, 3)) : 0;
}

ServerOptions small(milliseconds patience = std::chrono::seconds(20)) {
  ServerOptions options;
  options.port = 0;
  options.max_body = 10'000;
  options.max_header = 4096;
  options.idle = options.header = options.body = patience;
  options.write = milliseconds(1000);
  return options;
}

void echo(Request request, std::shared_ptr<Exchange> exchange) {
  exchange->answer(
      {.body = request.method + " " + request.path + "?" + request.query + " " + request.body,
       .type = "text/plain"});
}

struct Running {
  explicit Running(Handler handler = echo, ServerOptions options = small())
      : server(options, std::move(handler)) {
    server.start();
  }
  int port() const { return server.port(); }
  std::string ask(const std::string& bytes) { return Client(port()).send(bytes).read(); }
  Server server;
};

constexpr const char* kGet = "GET /x?y=1 HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n";

TEST(Server, AnswersAndKeepsConnections) {
  Running r;
  const std::string reply = r.ask(kGet);
  EXPECT_EQ(status_of(reply), 200);
  EXPECT_TRUE(reply.ends_with("\r\n\r\nGET /x?y=1 ")) << reply;
  Client client(r.port());
  for (int i = 0; i < 3; ++i) {
    client.send("POST /p HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n\r\nhi");
    EXPECT_NE(client.read("POST /p? hi").find("200 OK"), std::string::npos);
  }
  const std::string chunked = r.ask(
      "POST /c HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n");
  EXPECT_TRUE(chunked.ends_with("POST /c? abc")) << chunked;
  const std::string head = r.ask("HEAD / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 8\r\n"), std::string::npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  Running r;
  std::string all;
  for (int i = 0; i < 200; ++i) all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string replies = r.ask(all + kGet);
  size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    at = replies.find("GET /" + std::to_string(i) + "? ", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(Server, RefusesWhatIsNotARequest) {
  Running r;
  const std::string host = "Host: h\r\n";
  const auto get = [&](const std::string& headers) {
    return "GET / HTTP/1.1\r\n" + host + headers + "\r\n";
  };
  const std::vector<std::pair<std::string, int>> cases = {
      {"\r\n\r\n\r\n", 400},
      {"nonsense\r\n\r\n", 400},
      {"GET / HTTP/9.9\r\nHost: h\r\n\r\n", 505},
      {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400},
      {"GET / HTTP/1.1\nHost: h\n\n", 505},  // "1.1\\n" is no version
      {get(std::string("A: b\0c\r\n", 8)), 400},
      {get("Bad Header: x\r\n"), 400},
      {get(": x\r\n"), 400},
      {get("Content-Length: -1\r\n"), 400},
      {get("Content-Length: 0x10\r\n"), 400},
      {get("Content-Length: 99999999999999999999999\r\n"), 400},
      {get("Content-Length: 5\r\nContent-Length: 6\r\n"), 400},
      {get("Content-Length: 10001\r\n"), 413},
      {get("Transfer-Encoding: chunked\r\nContent-Length: 3\r\n"), 400},
      {get("Transfer-Encoding: gzip\r\n"), 400},
      {get("Transfer-Encoding: chunked\r\n") + "-2\r\nab\r\n", 400},
      {get("Transfer-Encoding: chunked\r\n") + "zz\r\n", 400},
      {get("Transfer-Encoding: chunked\r\n") + "fffffffffffffffff\r\n", 400},
      {get("Transfer-Encoding: chunked\r\n") + "2711\r\n" + std::string(10'001, 'x'), 413},
      {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
      {get("Content-Encoding: gzip\r\nContent-Length: 1\r\n") + "x", 415},
      {get("Expect: nonsense\r\n"), 417},
      {get("X: " + std::string(5000, 'x') + "\r\n"), 431},
      {"GET /" + std::string(100'000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n", 431},
  };
  for (const auto& [bytes, status] : cases) {
    EXPECT_EQ(status_of(r.ask(bytes)), status) << bytes.substr(0, 90);
    const std::string second = r.ask("GET /first HTTP/1.1\r\nHost: h\r\n\r\n" + bytes);
    const size_t after = second.find("GET /first? ");
    ASSERT_NE(after, std::string::npos) << second;
    EXPECT_EQ(status_of(second.substr(after + 12)), status) << bytes.substr(0, 90);
  }
  EXPECT_EQ(status_of(r.ask(kGet)), 200) << "others are served as before";
}

TEST(Server, GoesOnAfter100Continue) {
  Running r;
  Client client(r.port());
  client.send(
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
      "Connection: close\r\n\r\n");
  EXPECT_EQ(client.read("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(client.send("ok").read().ends_with("POST /? ok"));
}

TEST(Server, CutsSlowClients) {
  Running r(echo, small(milliseconds(400)));
  const auto seconds_of = [&](const std::string& bytes) {
    const auto begin = std::chrono::steady_clock::now();
    Client client(r.port());
    const std::string reply = client.send(bytes).read();
    EXPECT_EQ(reply.find("[no end]"), std::string::npos) << bytes;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  for (const char* begun :
       {"", "GET / HT", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab"}) {
    const double seconds = seconds_of(begun);
    EXPECT_GT(seconds, 0.3) << begun;
    EXPECT_LT(seconds, 5) << begun;
  }
  EXPECT_EQ(status_of(r.ask(kGet)), 200);
}

TEST(Server, NoticesThatAClientLeft) {
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> held;
  Running r([&](Request, std::shared_ptr<Exchange> exchange) {
    const std::lock_guard hold(mutex);
    held.push_back(std::move(exchange));
  });
  const auto count = [&] {
    const std::lock_guard hold(mutex);
    return held.size();
  };
  const auto wait = [](const std::function<bool()>& done) {
    for (int i = 0; i < 500 && !done(); ++i) std::this_thread::sleep_for(milliseconds(10));
    return done();
  };
  Client stays(r.port());
  stays.send(kGet);
  ASSERT_TRUE(wait([&] { return count() == 1; }));
  {
    Client leaves(r.port());
    leaves.send(kGet);
    ASSERT_TRUE(wait([&] { return count() == 2; }));
    EXPECT_FALSE(held[1]->gone());
  }
  EXPECT_TRUE(wait([&] { return held[1]->gone(); }));
  EXPECT_FALSE(held[0]->gone());
  held[0]->answer({.body = "late"});
  EXPECT_TRUE(stays.read().ends_with("late"));
  held.clear();
  EXPECT_TRUE(wait([&] { return r.server.connections() == 0; }));
}

TEST(Server, AnExchangeLetGoAnswers500) {
  Running r([](Request request, std::shared_ptr<Exchange>) {
    if (request.path == "/throw") throw std::runtime_error("broken");
  });
  EXPECT_EQ(status_of(r.ask(kGet)), 500);
  EXPECT_EQ(status_of(r.ask("GET /throw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")), 500);
}

TEST(Server, StreamsInParts) {
  Running r([](Request, std::shared_ptr<Exchange> exchange) {
    std::thread([exchange] {
      exchange->begin({.type = "text/event-stream"});
      exchange->send("one");
      exchange->send("");
      exchange->send("three");
      exchange->end();
    }).join();
  });
  const std::string reply = r.ask(kGet);
  EXPECT_TRUE(reply.ends_with("\r\n\r\n3\r\none\r\n5\r\nthree\r\n0\r\n\r\n")) << reply;
}

TEST(Server, DrainsWhatWasAskedAndTakesNothingNew) {
  std::shared_ptr<Exchange> held;
  std::atomic<bool> arrived{false};
  Running r([&](Request, std::shared_ptr<Exchange> exchange) {
    held = std::move(exchange);
    arrived = true;
  });
  Client asked(r.port()), idle(r.port());
  asked.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  for (int i = 0; i < 20'000 && !arrived; ++i) std::this_thread::sleep_for(milliseconds(1));
  ASSERT_TRUE(arrived);
  r.server.drain();
  EXPECT_EQ(idle.read(), "") << "a connection without a question is closed";
  EXPECT_FALSE(Client(r.port()).connected());
  held->answer({.body = "whole"});
  held.reset();
  const std::string reply = asked.read();
  EXPECT_TRUE(reply.ends_with("whole")) << reply;
  EXPECT_NE(reply.find("Connection: close"), std::string::npos);
}

TEST(Server, SaysWhatToDoWhenThePortIsTaken) {
  Running r;
  ServerOptions same = small();
  same.port = r.port();
  const std::string message = message_of(Exit::usage, [&] { Server second(same, echo); });
  EXPECT_NE(message.find("in use"), std::string::npos) << message;
  EXPECT_NE(message.find("--port"), std::string::npos) << message;
  same.host = "nowhere.example";
  EXPECT_NE(message_of(Exit::usage, [&] { Server s(same, echo); }).find("--host"),
            std::string::npos);
}

TEST(Server, HeadersCannotBeForged) {
  const std::string head = head_of({.headers = {{"X", "a\r\nSet-Cookie: b\n"}}});
  EXPECT_NE(head.find("X: aSet-Cookie: b\r\n"), std::string::npos) << head;
  EXPECT_EQ(chunk("0123456789abcdef"), "10\r\n0123456789abcdef\r\n");
}

}  // namespace
}  // namespace fovea
