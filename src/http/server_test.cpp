#include "http/server.h"

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <thread>

#include "base/check.h"
#include "support/running_server.h"
#include "temporary.h"

namespace fovea {
namespace {

TEST(HttpServer, AnswersAndKeepsConnections) {
  RunningServer r;
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

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  RunningServer r;
  std::string all;
  for (int i = 0; i < 200; ++i) all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: h\r\n\r\n";
  const std::string replies = r.ask(all + kGet);
  size_t at = 0;
  for (int i = 0; i < 200; ++i) {
    at = replies.find("GET /" + std::to_string(i) + "? ", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
}

TEST(HttpServer, RefusesInvalidRequests) {
  RunningServer r;
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
      {"GET / HTTP/1.1\nHost: h\n\n", 505},  // "1.1\\n" is not a version
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
  EXPECT_EQ(status_of(r.ask(kGet)), 200) << "other clients are served";
}

TEST(HttpServer, ReadsTheBodyAfter100Continue) {
  RunningServer r;
  Client client(r.port());
  client.send(
      "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 2\r\n"
      "Connection: close\r\n\r\n");
  EXPECT_EQ(client.read("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_TRUE(client.send("ok").read().ends_with("POST /? ok"));
}

TEST(HttpServer, ClosesSlowConnections) {
  RunningServer r(echo, small(milliseconds(400)));
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

TEST(HttpServer, IdleHeaderAndBodyHaveSeparateTimeouts) {
  const auto closes = [](milliseconds ServerOptions::*limit, std::string_view begun) {
    ServerOptions options = small();  // 20 s for the other timeouts: longer than the client waits
    options.*limit = milliseconds(400);
    return RunningServer(echo, options).ask(std::string(begun)) == "";
  };
  EXPECT_TRUE(closes(&ServerOptions::idle, ""));
  EXPECT_TRUE(closes(&ServerOptions::header, "GET / HT"));
  EXPECT_TRUE(
      closes(&ServerOptions::body, "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab"));
}

TEST(HttpServer, DetectsThatAClientLeft) {
  HoldingServer h;
  Client stays(h.port());
  stays.send(kGet);
  ASSERT_TRUE(h.wait_for_count(1));
  {
    Client leaves(h.port());
    leaves.send(kGet);
    ASSERT_TRUE(h.wait_for_count(2));
    EXPECT_FALSE(h.held[1]->gone());
  }
  EXPECT_TRUE(wait_for([&] { return h.held[1]->gone(); }));
  EXPECT_FALSE(h.held[0]->gone());
  h.held[0]->answer({.body = "late"});
  EXPECT_TRUE(stays.read().ends_with("late"));
  h.held.clear();
  EXPECT_TRUE(wait_for([&] { return h.running.server.connections() == 0; }));
}

TEST(HttpServer, AnswersAClientThatEndsItsSide) {
  HoldingServer h;
  {
    Client waits(h.port());
    waits.send(kGet).end_sending();
    ASSERT_TRUE(h.wait_for_count(1));
    EXPECT_EQ(waits.read("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_FALSE(h.held[0]->gone());
    h.held[0]->answer({.body = "late"});
    const std::string reply = waits.read();
    EXPECT_EQ(status_of(reply), 200) << reply;
    EXPECT_TRUE(reply.ends_with("late")) << reply;
  }
  {
    Client leaves(h.port());
    leaves.send(kGet).end_sending();
    ASSERT_TRUE(h.wait_for_count(2));
    leaves.read("\r\n\r\n");
  }
  EXPECT_FALSE(h.held[1]->gone()) << "it left after the probe";
  h.held[1]->answer({.body = "late"});
  h.held[0].reset();
  h.held[1].reset();
  EXPECT_TRUE(wait_for([&] { return h.running.server.connections() == 0; }));
  // Before an answer of HTTP/1.0, and during an answer, the server cannot send a probe.
  Client old(h.port());
  old.send("GET / HTTP/1.0\r\n\r\n").end_sending();
  ASSERT_TRUE(h.wait_for_count(3));
  EXPECT_TRUE(wait_for([&] { return h.held[2]->gone(); }));
  h.held[2].reset();
  EXPECT_EQ(old.read(), "") << "the server assumes that the client has left";
  Client reads(h.port());
  reads.send(kGet);
  ASSERT_TRUE(h.wait_for_count(4));
  h.held[3]->begin({});
  reads.read("\r\n\r\n");
  reads.end_sending();
  EXPECT_TRUE(wait_for([&] { return h.held[3]->gone(); }));
  h.held.clear();
}

TEST(HttpServer, AnswersPipelinedRequestsOfAClientThatEndsItsSide) {
  HoldingServer h;
  Client client(h.port());
  client.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\nGET /2 HTTP/1.1\r\nHost: h\r\n\r\n").end_sending();
  for (size_t i = 0; i < 2; ++i) {
    ASSERT_TRUE(h.wait_for_count(i + 1));
    h.held[i]->answer({.body = "answer " + std::to_string(i)});
  }
  h.held.clear();
  const std::string replies = client.read();
  EXPECT_NE(replies.find("answer 0HTTP/1.1"), std::string::npos) << replies;
  EXPECT_TRUE(replies.ends_with("answer 1")) << replies;
}

TEST(HttpServer, AnAbandonedExchangeAnswers500) {
  RunningServer r([](HttpRequest request, std::shared_ptr<HttpExchange>) {
    if (request.path == "/throw") throw std::runtime_error("broken");
  });
  EXPECT_EQ(status_of(r.ask(kGet)), 500);
  EXPECT_EQ(status_of(r.ask("GET /throw HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")), 500);
}

TEST(HttpServer, StreamsInParts) {
  RunningServer r([](HttpRequest, std::shared_ptr<HttpExchange> exchange) {
    std::thread([exchange] {
      exchange->begin({.type = "text/event-stream"});
      exchange->send("one");
      exchange->send("");
      exchange->send("three");
      exchange->send("0123456789abcdef");
      exchange->end();
    }).join();
  });
  const std::string reply = r.ask(kGet);
  EXPECT_TRUE(
      reply.ends_with("\r\n\r\n3\r\none\r\n5\r\nthree\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n"))
      << reply;
}

TEST(HttpServer, DrainAnswersPendingAndRefusesNewRequests) {
  std::shared_ptr<HttpExchange> held;
  std::atomic<bool> arrived{false};
  RunningServer r([&](HttpRequest, std::shared_ptr<HttpExchange> exchange) {
    held = std::move(exchange);
    arrived = true;
  });
  Client asked(r.port()), idle(r.port());
  asked.send("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  for (int i = 0; i < 20'000 && !arrived; ++i) std::this_thread::sleep_for(milliseconds(1));
  ASSERT_TRUE(arrived);
  r.server.drain();
  EXPECT_EQ(idle.read(), "") << "an idle connection is closed";
  EXPECT_FALSE(Client(r.port()).connected());
  held->answer({.body = "whole"});
  held.reset();
  const std::string reply = asked.read();
  EXPECT_TRUE(reply.ends_with("whole")) << reply;
  EXPECT_NE(reply.find("Connection: close"), std::string::npos);
}

TEST(HttpServer, AnIncompleteRequestDoesNotDelayDrain) {
  HoldingServer h;
  Client begun(h.port()), asked(h.port());
  begun.send("POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\nab");
  asked.send(kGet);
  ASSERT_TRUE(h.wait_for_count(1));
  const auto begin = std::chrono::steady_clock::now();
  h.running.server.drain();
  EXPECT_EQ(begun.read(), "");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, milliseconds(4000));
  EXPECT_FALSE(h.held[0]->gone()) << "its answer is still pending";
  h.running.server.cut();
  EXPECT_TRUE(wait_for([&] { return h.held[0]->gone(); })) << "the handler can stop";
  h.held.clear();
  EXPECT_EQ(asked.read(), "");
}

TEST(HttpServer, EveryReplyAllowsOtherOriginsAndRefusalsAreReported) {
  std::mutex mutex;
  std::vector<int> statuses;
  ServerOptions options = small();
  options.refused = [&](int status) {
    const std::lock_guard hold(mutex);
    statuses.push_back(status);
  };
  RunningServer r([](HttpRequest, std::shared_ptr<HttpExchange>) {}, options);
  const std::string post = "POST / HTTP/1.1\r\nHost: h\r\n";
  const std::vector<std::pair<std::string, int>> cases = {
      {post + "Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx", 415},
      {post + "Content-Length: 10001\r\n\r\n", 413},
      {"nonsense\r\n\r\n", 400},
      {"GET /" + std::string(5000, 'x') + " HTTP/1.1\r\nHost: h\r\n\r\n", 431},
      {kGet, 500},
  };
  std::vector<int> wanted;
  for (const auto& [bytes, status] : cases) {
    const std::string reply = r.ask(bytes);
    EXPECT_EQ(status_of(reply), status) << reply;
    EXPECT_NE(reply.find("\r\nAccess-Control-Allow-Origin: *\r\n"), std::string::npos) << reply;
    if (status != 500) wanted.push_back(status);
  }
  Client late(r.port());
  late.send("GET / HT");
  ASSERT_TRUE(wait_for([&] { return r.server.connections() == 1; }));
  std::this_thread::sleep_for(milliseconds(50));
  r.server.drain();
  const std::string reply = late.send("TP/1.1\r\nHost: h\r\n\r\n").read();
  EXPECT_EQ(status_of(reply), 503) << reply;
  EXPECT_NE(reply.find("\r\nAccess-Control-Allow-Origin: *\r\n"), std::string::npos) << reply;
  wanted.push_back(503);
  const std::lock_guard hold(mutex);
  EXPECT_EQ(statuses, wanted);
}

TEST(HttpServer, IncompleteLargeBodiesDoNotBlockOtherRequests) {
  ServerOptions options = small();
  options.max_body = 1 << 20;
  options.max_bodies = 3 << 19;
  RunningServer r(echo, options);
  const auto post = [](size_t bytes, size_t sent) {
    return "POST / HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: " +
           std::to_string(bytes) + "\r\n\r\n" + std::string(sent, 'x');
  };
  Client first(r.port());
  first.send(post(1 << 20, 1'000'000));
  std::this_thread::sleep_for(milliseconds(200));  // until the server has read it
  const std::string refused = r.ask(post(1 << 20, 1'000'000));
  EXPECT_EQ(status_of(refused), 503) << refused.substr(0, 300);
  EXPECT_NE(refused.find("\r\nRetry-After: 5\r\n"), std::string::npos) << refused.substr(0, 300);
  EXPECT_EQ(status_of(r.ask(post(60'000, 60'000))), 200) << "small bodies are read";
  EXPECT_EQ(status_of(first.send(std::string((1 << 20) - 1'000'000, 'x')).read()), 200);
  EXPECT_EQ(status_of(r.ask(post(1 << 20, 1 << 20))), 200) << "the memory is available again";
}

TEST(HttpServer, MayRefuseARequestBeforeItsBodyIsRead) {
  ServerOptions options = small();
  options.screen = [](const HttpRequest& head) -> std::optional<HttpReply> {
    if (head.header("authorization") != "wrong") return std::nullopt;
    return HttpReply{.status = 403, .body = head.path};
  };
  RunningServer r(echo, options);
  const std::string reply =
      r.ask("POST /p HTTP/1.1\r\nHost: h\r\nAuthorization: wrong\r\nContent-Length: 9\r\n\r\n");
  EXPECT_EQ(status_of(reply), 403) << reply;
  EXPECT_TRUE(reply.ends_with("/p")) << reply;
  EXPECT_EQ(status_of(r.ask(kGet)), 200);
}

TEST(HttpServer, ReadsAllFormsThatHttpAllows) {
  RunningServer r;
  const auto get = [&](const std::string& target, const std::string& headers = "") {
    return r.ask("GET " + target + " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + headers +
                 "\r\n");
  };
  EXPECT_TRUE(get("http://other:80/x?y=1").ends_with("\r\n\r\nGET /x?y=1 "));
  EXPECT_TRUE(get("HTTPS://other").ends_with("\r\n\r\nGET /? "));
  EXPECT_TRUE(get("http://other?y").ends_with("\r\n\r\nGET /?y "));
  EXPECT_EQ(status_of(get("/", "Content-Encoding: Identity\r\n")), 200);
  Client client(r.port());
  client.send("HEAD / HTTP/1.1\r\nHost: h\r\n\r\n");
  client.read("\r\n\r\n");
  const std::string refused = client.send("nonsense\r\n\r\n").read();
  EXPECT_TRUE(refused.ends_with(R"({"error":"this is not an HTTP request"})")) << refused;
  EXPECT_EQ(
      whole_head_of({.status = 204, .type = ""}, ConnectionReuse::close).find("Content-Length"),
      std::string::npos);
}

TEST(HttpServer, APortInUseIsAnErrorWithARemedy) {
  RunningServer r;
  ServerOptions same = small();
  same.port = r.port();
  const std::string message = message_of(ExitCode::usage, [&] { HttpServer second(same, echo); });
  EXPECT_NE(message.find("in use"), std::string::npos) << message;
  EXPECT_NE(message.find("choose another `port`"), std::string::npos) << message;
  same.host = "nowhere.example";
  EXPECT_NE(message_of(ExitCode::usage, [&] { HttpServer s(same, echo); }).find("`host`: "),
            std::string::npos);
}

TEST(HttpServer, HeadersCannotBeForged) {
  const std::string head = head_of({.headers = {{"X", "a\r\nSet-Cookie: b\n"}}});
  EXPECT_NE(head.find("X: aSet-Cookie: b\r\n"), std::string::npos) << head;
}

}  // namespace
}  // namespace fovea
