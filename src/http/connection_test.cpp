#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <latch>
#include <set>

#include "support/running_server.h"

// The limits of connections: on the memory that one client can use, and on the number of
// connections.
namespace fovea {
namespace {

std::string post(const std::string& headers, const std::string& body = "") {
  return "POST /p HTTP/1.1\r\nHost: h\r\nConnection: close\r\n" + headers + "\r\n" + body;
}

std::string chunked(const std::string& body) {
  return post("Transfer-Encoding: chunked\r\n", body);
}

TEST(Connection, ChunkExtensionsAndTrailersHaveALimit) {
  RunningServer r;  // 4 KiB of header, so 8 KiB of buffer
  const std::string end = "2\r\nab\r\n0\r\n\r\n";
  const auto extension = [](size_t bytes) { return ";x=" + std::string(bytes, 'y'); };
  EXPECT_TRUE(r.ask(chunked("2" + extension(4000) + "\r\nab\r\n0\r\n\r\n")).ends_with("? ab"));
  EXPECT_TRUE(r.ask(chunked("2\r\nab\r\n0\r\nX: " + std::string(4000, 'y') + "\r\n\r\n"))
                  .ends_with("POST /p? ab"));
  std::string many, tiny;
  for (int i = 0; i < 17; ++i) many += "1" + extension(4000) + "\r\nx\r\n";
  for (int i = 0; i < 14'000; ++i) tiny += "1\r\nx\r\n";
  const std::vector<std::pair<const char*, std::string>> cases = {
      {"an extension", "2" + extension(9000) + "\r\nab\r\n0\r\n\r\n"},
      {"an extension without end", "2" + extension(1 << 20)},
      {"the extension of the last chunk", "0" + extension(9000) + "\r\n\r\n"},
      {"a trailer", "2\r\nab\r\n0\r\nX: " + std::string(9000, 'y') + "\r\n\r\n"},
      {"a trailer without end", "0\r\n" + std::string(1 << 20, 'y')},
      {"digits of a size", std::string(9000, '0') + end},
      {"digits without end", std::string(1 << 20, '0')},
      {"extensions in all", many + "0\r\n\r\n"},
      {"chunks of one byte", tiny + "0\r\n\r\n"},
  };
  for (const auto& [name, body] : cases) EXPECT_EQ(status_of(r.ask(chunked(body))), 413) << name;
  EXPECT_EQ(status_of(r.ask(kGet)), 200);
}

TEST(Connection, OneClientCannotHaveAllConnections) {
  ServerOptions options = small();
  options.max_connections = 8;
  options.max_connections_per_client = 6;
  RunningServer r(echo, options);
  std::deque<Client> silent;
  for (int i = 0; i < 20; ++i) silent.emplace_back(r.port());
  EXPECT_EQ(status_of(Client(r.port(), "127.0.0.2").send(kGet).read()), 200);
  EXPECT_TRUE(wait_for([&] { return r.server.connections() == 6; }));
  EXPECT_EQ(silent.front().read(), "") << "the longest idle connection was closed";
  EXPECT_EQ(status_of(silent.back().send(kGet).read()), 200);
}

TEST(Connection, ANewClientReplacesAnIdleConnection) {
  ServerOptions options = small();
  options.max_connections = 8;
  RunningServer r(echo, options);
  Client asks(r.port(), "127.0.0.9");
  asks.send("GET /1 HTTP/1.1\r\nHost: h\r\n\r\n").read("GET /1? ");
  std::deque<Client> silent;
  for (int i = 0; i < 30; ++i) {
    silent.emplace_back(r.port());
    if (i % 2 == 1) silent.back().send("POST / HTTP/1.1\r\nHost: h\r\nContent-Le");
  }
  EXPECT_EQ(status_of(Client(r.port(), "127.0.0.2").send(kGet).read()), 200);
  EXPECT_EQ(status_of(asks.send(kGet).read()), 200) << "a client with one connection keeps it";
  EXPECT_LE(r.server.connections(), 8u);
}

TEST(Connection, ConnectionsThatWaitForTheServerStayOpen) {
  ServerOptions options = small();
  options.max_connections_per_client = 3;
  HoldingServer h(options);
  std::deque<Client> asked;
  for (size_t i = 0; i < 3; ++i) {
    asked.emplace_back(h.port());
    asked.back().send(kGet);
    ASSERT_TRUE(h.wait_for_count(i + 1));
  }
  EXPECT_EQ(status_of(Client(h.port()).read()), 429);
  Client other(h.port(), "127.0.0.2");
  other.send(kGet);
  ASSERT_TRUE(h.wait_for_count(4));
  for (const auto& exchange : h.held) exchange->answer({.body = "late"});
  h.held.clear();
  for (Client& client : asked) EXPECT_TRUE(client.read().ends_with("late"));
  EXPECT_TRUE(other.read().ends_with("late"));
}

TEST(Connection, AnIdleConnectionIsEvictedBeforeAnIncompleteRequest) {
  ServerOptions options = small();
  options.max_connections_per_client = 2;
  RunningServer r(echo, options);
  Client asks(r.port()), idle(r.port());
  asks.send("GET /x HTTP/1.1\r\n");
  std::this_thread::sleep_for(milliseconds(100));  // until the server has read it
  EXPECT_EQ(status_of(r.ask(kGet)), 200);
  EXPECT_EQ(idle.read(), "") << "closed";
  EXPECT_EQ(status_of(asks.send("Host: h\r\nConnection: close\r\n\r\n").read()), 200);
}

TEST(Connection, AWaitingClientIsAcceptedAfterAnAnswer) {
  // Longer than the test, so that the server closes no idle connection.
  ServerOptions options = small(std::chrono::seconds(60));
  options.max_connections = 2;
  HoldingServer h(options);
  std::deque<Client> asked;
  const auto ask = [&] { asked.emplace_back(h.port()).send("GET / HTTP/1.1\r\nHost: h\r\n\r\n"); };
  for (size_t i = 1; i <= 2; ++i) {
    ask();
    ASSERT_TRUE(h.wait_for_count(i));
  }
  for (size_t i = 0; i < 3; ++i) {
    ask();
    std::this_thread::sleep_for(milliseconds(100));
    EXPECT_EQ(h.count(), i + 2) << "the limit is reached";
    EXPECT_EQ(h.running.server.connections(), 2u);
    std::exchange(h.held[i], nullptr)->answer({});
    ASSERT_TRUE(h.wait_for_count(i + 3));
    ASSERT_TRUE(wait_for([&] { return h.running.server.connections() == 2; }));
  }
  h.held.clear();
}

TEST(Connection, BehindAProxyConnectionsPerClientAreUnlimited) {
  ServerOptions options = small();
  options.max_connections_per_client = 3;
  options.proxies = 1;
  HoldingServer h(options);
  std::deque<Client> asked;
  for (size_t i = 0; i < 10; ++i) {
    asked.emplace_back(h.port());
    asked.back().send(kGet);
    ASSERT_TRUE(h.wait_for_count(i + 1));
  }
  h.held.clear();
}

TEST(Connection, AnUnreadStreamIsEnded) {
  ServerOptions options = small();
  options.write = std::chrono::seconds(20);
  HoldingServer h(options);
  Client slow(h.port()), reads(h.port());
  slow.send(kGet);
  ASSERT_TRUE(h.wait_for_count(1));
  reads.send(kGet);
  ASSERT_TRUE(h.wait_for_count(2));
  const std::string part(64 << 10, 'x');
  for (const auto& exchange : h.held) exchange->begin({});
  const auto of_slow = h.held[0].get(), of_reader = h.held[1].get();
  size_t got = 0;
  for (int i = 0; i < 1000 && !of_reader->gone(); ++i) {  // far more than the buffers of sockets
    if (!of_slow->gone()) of_slow->send(part);
    const std::string mark = "|" + std::to_string(i) + "|";
    of_reader->send(part + mark);
    got += reads.read(mark).size();
  }
  EXPECT_TRUE(of_slow->gone());
  EXPECT_FALSE(of_reader->gone());
  of_reader->end();
  EXPECT_TRUE(reads.read().ends_with("0\r\n\r\n"));
  EXPECT_GT(got, 1000 * part.size());
  h.held.clear();
}

TEST(Connection, AnUnreadAnswerIsEnded) {
  ServerOptions options = small();
  options.write = milliseconds(300);
  RunningServer r(
      [](HttpRequest, std::shared_ptr<HttpExchange> exchange) {
        exchange->answer({.body = std::string(24 << 20, 'x')});
      },
      options);
  Client slow(r.port());
  slow.send(kGet).read("\r\n\r\n");
  EXPECT_TRUE(wait_for([&] { return r.server.connections() == 0; }));
}

TEST(Connection, UnreadAnswersHaveALimitPerClient) {
  ServerOptions options = small();
  options.write = std::chrono::seconds(20);
  options.max_answers = 128 << 20;  // 32 MiB per client: more than the buffers of sockets
  RunningServer r(
      [](HttpRequest, std::shared_ptr<HttpExchange> exchange) {
        exchange->answer({.body = std::string(24 << 20, 'x')});
      },
      options);
  Client slow(r.port());
  slow.send(kGet);
  slow.read("\r\n\r\n");
  EXPECT_EQ(status_of(r.ask(kGet)), 503) << "48 MiB of one client";
  const std::string other = Client(r.port(), "127.0.0.2").send(kGet).read();
  EXPECT_EQ(status_of(other), 200);
  EXPECT_GT(other.size(), 24u << 20);
  slow.read();
  EXPECT_TRUE(wait_for([&] { return r.server.connections() == 0; }));
  EXPECT_EQ(status_of(r.ask(kGet)), 200) << "the memory is available again";
  Client(r.port()).send(kGet).read("\r\n\r\n");  // the client leaves
  EXPECT_TRUE(wait_for([&] { return r.server.connections() == 0; }));
  EXPECT_EQ(status_of(r.ask(kGet)), 200) << "also that of a client that left";
}

TEST(Connection, LargeBodiesHaveALimitPerClient) {
  ServerOptions options = small();
  options.max_body = 1 << 20;
  options.max_bodies = 4 << 20;  // 1 MiB per client
  RunningServer r(echo, options);
  const std::string whole = post("Content-Length: 1000000\r\n", std::string(1'000'000, 'x'));
  Client unfinished(r.port());
  unfinished.send(std::string_view(whole).substr(0, whole.size() - 1));
  std::this_thread::sleep_for(milliseconds(200));  // until the server has read it
  EXPECT_EQ(status_of(r.ask(whole)), 503);
  EXPECT_EQ(status_of(Client(r.port(), "127.0.0.2").send(whole).read()), 200);
  EXPECT_EQ(status_of(unfinished.send("x").read()), 200);
  Client(r.port()).send(std::string_view(whole).substr(0, whole.size() - 1));  // the client leaves
  EXPECT_TRUE(wait_for([&] { return r.server.connections() == 0; }));
  EXPECT_EQ(status_of(r.ask(whole)), 200) << "the memory is available again";
  std::deque<Client> many;
  for (const char* from : {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"})
    many.emplace_back(r.port(), from).send(std::string_view(whole).substr(0, whole.size() - 1));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(status_of(r.ask(whole)), 503) << "5 MB of all clients";
}

// A proxy opens all connections. The limits apply to the clients that it names.
TEST(Connection, BehindAProxyBodiesHaveALimitPerClient) {
  ServerOptions options = small();
  options.max_body = 1 << 20;
  options.max_bodies = 4 << 20;
  options.proxies = 1;
  RunningServer r(echo, options);
  const auto of = [](const std::string& client) {
    return post("Content-Length: 1000000\r\nX-Forwarded-For: " + client + "\r\n",
                std::string(1'000'000, 'x'));
  };
  const std::string first = of("192.0.2.1");
  Client unfinished(r.port());
  unfinished.send(std::string_view(first).substr(0, first.size() - 1));
  std::this_thread::sleep_for(milliseconds(200));  // until the server has read it
  EXPECT_EQ(status_of(r.ask(first)), 503);
  EXPECT_EQ(status_of(r.ask(of("192.0.2.2"))), 200);
  EXPECT_EQ(status_of(unfinished.send("x").read()), 200);
}

// When the handler has received a large body, the body no longer counts.
TEST(Connection, HandledBodiesDoNotCount) {
  ServerOptions options = small();
  options.max_body = 1 << 20;
  options.max_bodies = 4 << 20;
  HoldingServer h(options);
  const std::string whole = post("Content-Length: 1000000\r\n", std::string(1'000'000, 'x'));
  std::deque<Client> asked;
  for (size_t i = 0; i < 3; ++i) {
    asked.emplace_back(h.port()).send(whole);
    ASSERT_TRUE(h.wait_for_count(i + 1)) << i;
    std::this_thread::sleep_for(milliseconds(50));  // until the handler has returned
  }
  h.held.clear();
}

TEST(Connection, LargeRequestsAreHandledOnSeparateThreads) {
  std::mutex mutex;
  std::set<std::thread::id> small_ones, large_ones;
  std::latch go(1);
  ServerOptions options = small();
  options.max_header = 16 << 10;
  const HttpHandler handler = [&](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    const bool large = request.body.size() + request.query.size() > 4096;
    {
      const std::lock_guard hold(mutex);
      (large ? large_ones : small_ones).insert(std::this_thread::get_id());
    }
    if (large) go.wait();
    exchange->answer({.body = request.path});
  };
  RunningServer r(handler, options);
  const auto sized = [](size_t n) {
    return post("Content-Length: " + std::to_string(n) + "\r\n", std::string(n, 'x'));
  };
  std::deque<Client> large;
  for (const std::string& request :
       {sized(4097), sized(10'000), sized(5000),
        "GET /q?" + std::string(4000, 'q') + std::string(97, 'q') + " HTTP/1.1\r\nHost: h\r\n" +
            "Connection: close\r\n\r\n"}) {
    large.emplace_back(r.port());
    large.back().send(request);
  }
  EXPECT_TRUE(wait_for([&] {
    const std::lock_guard hold(mutex);
    return large_ones.size() == 2;
  }));
  EXPECT_EQ(status_of(r.ask(sized(4096))), 200) << "small requests do not wait for large ones";
  EXPECT_EQ(status_of(r.ask(kGet)), 200);
  go.count_down();
  for (Client& client : large) EXPECT_EQ(status_of(client.read()), 200);
  EXPECT_EQ(small_ones.size(), 1u);
  EXPECT_EQ(large_ones.size(), 2u);
  EXPECT_FALSE(large_ones.contains(*small_ones.begin()));
}

TEST(Connection, LargeRequestsOfClientsTakeTurns) {
  ServerOptions options = small();
  options.handler_threads = 1;
  std::latch go(1);
  std::string order;  // only one thread writes it
  RunningServer r(
      [&](HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
        go.wait();
        order += request.body.back();
        exchange->answer({});
      },
      options);
  std::deque<Client> asked;
  const auto ask = [&](const char* from, char name) {
    asked.emplace_back(r.port(), from)
        .send(post("Content-Length: 5000\r\n", std::string(5000, name)));
    std::this_thread::sleep_for(milliseconds(100));  // until the request waits for the handler
  };
  for (int i = 0; i < 4; ++i) ask("127.0.0.1", 'f');
  ask("127.0.0.2", 'a');
  go.count_down();
  for (Client& client : asked) EXPECT_EQ(status_of(client.read()), 200);
  EXPECT_EQ(order, "ffaff") << "the handler took the first request before the others arrived";
}

TEST(Connection, LargeRequestsOfClientsThatLeftAreNotHandled) {
  ServerOptions options = small();
  options.handler_threads = 1;
  std::atomic<int> handled = 0, left = 0;
  options.refused = [&](int status) { left += status == 499; };
  std::latch go(1);
  RunningServer r(
      [&](HttpRequest, std::shared_ptr<HttpExchange> exchange) {
        ++handled;
        go.wait();
        exchange->answer({});
      },
      options);
  const std::string request = post("Content-Length: 5000\r\n", std::string(5000, 'x'));
  Client first(r.port());
  first.send(request);
  ASSERT_TRUE(wait_for([&] { return handled == 1; }));
  {
    Client leaves(r.port());
    leaves.send(request);
    ASSERT_TRUE(wait_for([&] { return r.server.connections() == 2; }));
    std::this_thread::sleep_for(milliseconds(200));  // until the request waits for the handler
  }
  std::this_thread::sleep_for(milliseconds(200));
  go.count_down();
  EXPECT_EQ(status_of(first.read()), 200);
  EXPECT_TRUE(wait_for([&] { return left == 1; }));
  EXPECT_EQ(handled, 1);
}

TEST(Connection, LittleOfARefusedRequestIsRead) {
  RunningServer r;
  Client client(r.port());
  client.send("nonsense\r\n\r\n").read("}");
  constexpr size_t kMuch = 128 << 20;
  EXPECT_LT(client.taken_of(std::string(kMuch, 'x')), kMuch);
}

TEST(Connection, RefusesOtherHostsIfNamesAreGiven) {
  ServerOptions options = small();
  options.hosts = default_hosts("127.0.0.2");
  options.hosts.push_back("allowed.example");
  RunningServer r(echo, options);
  const auto status = [&](const std::string& host) {
    return status_of(r.ask("GET / HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n\r\n"));
  };
  for (const char* host : {"localhost", "LocalHost:5000", "127.0.0.1:80", "127.0.0.2", "[::1]",
                           "[::1]:5000", "allowed.example:1"})
    EXPECT_EQ(status(host), 200) << host;
  for (const char* host : {"attacker.example", "localhost.attacker.example",
                           "127.0.0.1.nip.example", "[::2]", "", "10.0.0.1", "[localhost"})
    EXPECT_EQ(status(host), 421) << host;
  EXPECT_EQ(status_of(r.ask("GET / HTTP/1.0\r\n\r\n")), 200) << "no browser";
  EXPECT_TRUE(default_hosts("0.0.0.0").empty());
  EXPECT_TRUE(default_hosts("192.168.0.1").empty());
  EXPECT_FALSE(default_hosts("::1").empty());
  EXPECT_FALSE(default_hosts("localhost").empty());
}

}  // namespace
}  // namespace fovea
