// The processor time that the server's thread spends on a request: at most 5 ms. The test reads the
// clock of this thread, and the minimum of several attempts counts, so that other programs do not
// matter.
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <ctime>
#include <functional>
#include <future>
#include <latch>
#include <list>

#include "http/connection_table.h"
#include "support/growth.h"
#include "support/running_server.h"
#include "support/service_under_test.h"
#include "support/tasks.h"

namespace fovea {
namespace {

constexpr double kMost = 0.005;
const std::string kHead = " HTTP/1.1\r\nHost: h\r\nConnection: close\r\n";
const std::string kForm = "Content-Type: application/x-www-form-urlencoded\r\n";

ApiKeys keys_of(size_t count) {
  std::string lines;
  for (size_t i = 0; i < count; ++i) lines += "key-" + std::to_string(i) + "\n";
  return ApiKeys::parse(lines, "keys", 0);
}

// A service as `fovea serve` runs it, with 100,000 keys, and with additional paths for this test.
class IoTime : public ::testing::Test {
 protected:
  static ServiceOptions service_options() {
    ServiceOptions options;
    options.access.keys = keys_of(100'000);
    return options;
  }
  static ServerOptions server_options(Service& service) {
    ServerOptions options;
    options.port = 0;
    options.costly = [&](const HttpRequest& head) { return service.is_costly(head); };
    options.screen = [&](const HttpRequest& head) { return service.screen(head); };
    return options;
  }

  void handle(HttpRequest request, std::shared_ptr<HttpExchange> exchange) {
    if (request.path == "/clock") {
      pthread_getcpuclockid(pthread_self(), &clock_);
      const double time = now();
      longest_turn_ = std::max(longest_turn_.load(), time - last_clock_);
      last_clock_ = time;
      exchange->answer({.body = request.query});
    } else if (request.path == "/large") {
      const size_t bytes = std::stoul(request.query) << 20;
      answering_ =
          std::thread([exchange, bytes] { exchange->answer({.body = std::string(bytes, 'x')}); });
    } else if (request.path == "/stream") {
      answering_ = std::thread([exchange] {
        exchange->begin({});
        for (int i = 0; i < 10'000; ++i) exchange->send("event: words\ndata: {}\n\n");
        exchange->end();
      });
    } else {
      service.handle(std::move(request), std::move(exchange));
    }
  }

  static std::string clock_request(const std::string& answer) {
    return "GET /clock?" + answer + " HTTP/1.1\r\nHost: h\r\n\r\n";
  }
  // Waits until the server's thread has done all earlier work.
  void ask_clock() { control_.send(clock_request("last")).read("\r\n\r\nlast"); }
  void wait_until_idle() {
    for (int i = 0; i < 2; ++i) ask_clock();
  }
  double now() const {
    timespec time{};
    clock_gettime(clock_, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  }
  double seconds_of(const std::function<void()>& act) {
    wait_until_idle();
    const double begin = now();
    act();
    wait_until_idle();
    const double seconds = now() - begin;
    if (answering_.joinable()) answering_.join();
    run_out(service.batcher());  // drops work whose clients have left
    return seconds;
  }
  // The longest time that another client waits for the server's thread during `act`.
  double turn_of(const std::function<void()>& act) {
    wait_until_idle();
    longest_turn_ = 0;
    std::atomic<bool> done = false;
    std::thread other([&] {  // always has requests waiting for the server's thread
      std::string block;
      for (int i = 0; i < 200; ++i) block += clock_request("next");
      block += clock_request("last");
      while (!done) control_.send(block).read("\r\n\r\nlast");
    });
    act();
    done = true;
    other.join();
    wait_until_idle();
    if (answering_.joinable()) answering_.join();
    return longest_turn_;
  }
  void expect_short(const std::string& name, const std::function<void()>& act) {
    expect_least_short(name, [&] { return seconds_of(act); });
  }
  void expect_short_turns(const std::string& name, const std::function<void()>& act) {
    expect_least_short(name, [&] { return turn_of(act); });
  }
  // Makes three attempts, and more if all of them were slow because the machine is busy.
  void expect_least_short(const std::string& name, const std::function<double()>& attempt) {
    double least = 1e9;
    for (int i = 0; i < 3 || (i < 20 && least > time_limit(kMost)); ++i)
      least = std::min(least, attempt());
    RecordProperty(std::to_string(++cases_), name + ": " + std::to_string(1e3 * least) + " ms");
    EXPECT_LT(least, time_limit(kMost)) << name;
  }
  void expect_short(const std::string& name, const std::string& request, int status = 200) {
    expect_short(name, [&] {
      const std::string reply = Client(port()).send(request).read();
      EXPECT_EQ(status_of(reply), status) << name << ": " << reply.substr(0, 400);
    });
  }
  // The client leaves when its sentences are in the queue.
  void expect_short_until_queued(const std::string& name, const std::string& request) {
    expect_short(name, [&] {
      Client client(port());
      client.send(request);
      EXPECT_TRUE(wait_for([&] { return service.batcher().waiting() == 1; })) << name;
    });
  }
  // Sends the request in parts of one byte. The server reads each part separately.
  void expect_short_in_parts(const std::string& name, const std::string& request) {
    expect_short(name, [&] {
      Client client(port());
      for (const char& byte : request) {
        client.send({&byte, 1});
        std::this_thread::sleep_for(std::chrono::microseconds(10));
      }
      EXPECT_EQ(status_of(client.read()), 200) << name;
    });
  }
  int port() const { return running_.port(); }

  Service service{service_options(), BatcherOptions{}, ServedModels{echo_model("en", "de")}};

 private:
  clockid_t clock_{};
  double last_clock_ = 0;  // of the server's thread
  std::atomic<double> longest_turn_ = 0;
  std::thread answering_;
  int cases_ = 0;
  RunningServer running_{std::bind_front(&IoTime::handle, this), server_options(service)};
  Client control_{running_.port()};
};

std::string with_length(const std::string& path, const std::string& headers,
                        const std::string& body) {
  return "POST " + path + kHead + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string in_chunks(const std::string& path, size_t bytes, size_t each) {
  std::string request = "POST " + path + kHead + kForm + "Transfer-Encoding: chunked\r\n\r\n";
  char size[20];
  std::snprintf(size, sizeof size, "%zx\r\n", each);
  for (size_t i = 0; i < bytes; i += each) request += size + std::string(each, 'x') + "\r\n";
  return request + "0\r\n\r\n";
}

// Returns as many copies of the part as fit into `bytes`.
std::string repeated(std::string_view part, size_t bytes) {
  std::string text;
  while (text.size() + part.size() <= bytes) text += part;
  return text;
}

constexpr size_t kBody = 4 << 20;

TEST_F(IoTime, OfLargeBodiesIsBounded) {
  const std::string json = "Content-Type: application/json\r\n";
  expect_short("form", with_length("/detect", kForm, repeated("%41", kBody)), 400);
  expect_short("fields", with_length("/detect", kForm, repeated("q=a&", kBody)), 400);
  expect_short("JSON",
               with_length("/detect", json, R"({"q":")" + repeated("\\u0041", kBody - 9) + "\"}"),
               400);
  expect_short("JSON lists", with_length("/detect", json, repeated("[0,", kBody)), 400);
  const std::string part = "--B\r\nContent-Disposition: form-data; name=";
  expect_short("multipart",
               with_length("/translate_file", "Content-Type: multipart/form-data; boundary=B\r\n",
                           part + "source\r\n\r\nen\r\n" + part + "target\r\n\r\nde\r\n" + part +
                               "file; filename=a.txt\r\n\r\n" + repeated("a. ", kBody - 500) +
                               "\r\n--B--\r\n"),
               400);
  expect_short("large chunks", in_chunks("/detect", kBody, 64 << 10), 400);
  expect_short("chunks", in_chunks("/detect", kBody, 512), 400);
  expect_short("small chunks", in_chunks("/detect", 13'000, 1), 400);
  expect_short("too many chunks", in_chunks("/detect", 100'000, 1), 413);
}

TEST_F(IoTime, OfSmallRequestsIsBounded) {
  for (const char* field : {"a:\r\n", "A:b\r\n", "abcdefgh: ijklmnopq\r\n"})
    expect_short(field, "GET /health" + kHead + repeated(field, 16'000) + "\r\n");
  expect_short("a field", "GET /health" + kHead + "X: " + std::string(16'000, 'x') + "\r\n\r\n");
  expect_short("a query", "GET /health?" + repeated("q=%41&", 16'000) + kHead + "\r\n");
  std::string many;
  for (int i = 0; i < 99; ++i) many += "GET /health HTTP/1.1\r\nHost: h\r\n\r\n";
  expect_short("100 requests", many + "GET /health" + kHead + "\r\n");
  for (const char* path : {"/openapi.json", "/web/main.js", "/", "/v1/models", "/languages"})
    expect_short(path, std::string("GET ") + path + kHead + "\r\n");
  const std::string key = "Authorization: Bearer key-99999\r\n";
  expect_short("a key", "POST /detect" + kHead + kForm + key + "Content-Length: 3\r\n\r\nq=a");
  expect_short("a key in the body", with_length("/detect", kForm, "q=a&api_key=key-0"));
  for (const char* path : {"/translate", "/detect", "/nowhere"})  // many labels
    for (const char* body : {"q=a", "q=", "", "q=a&api_key=key"})
      Client(port()).send(with_length(path, kForm, body)).read();
  expect_short("/metrics", "GET /metrics" + kHead + key + "\r\n");
  for (const char* text : {"a", "%C3%A4+", "Hello+you.+"})
    expect_short(text, with_length("/detect", kForm, "q=" + repeated(text, 4'090)));
}

TEST_F(IoTime, OfTextsOfSmallRequestsIsBounded) {
  const std::string head = "source=en&target=de&format=";
  for (const char* text : {"A.+B.+", "Hello+you+and+you.+", "a", "%E6%88%91%E3%80%82", "a,+"})
    expect_short_until_queued(
        text, with_length("/translate", kForm, head + "text&q=Hello+" + repeated(text, 4'000)));
  expect_short_until_queued(
      "auto", with_length("/translate", kForm,
                          "source=auto&target=de&q=" + repeated("Hello+you+and+you.+", 4'000)));
  for (const char* text : {"<b>a</b>", "<p>A.</p>", "<b>a+", "%26eacute;", "<a b=c>a</a>+"})
    expect_short_until_queued(
        text, with_length("/translate", kForm, head + "html&q=Hello+" + repeated(text, 4'000)));
}

TEST_F(IoTime, OfAnswersIsBounded) {
  expect_short("a large answer", "GET /large?8" + kHead + "\r\n");
  expect_short("a stream", "GET /stream" + kHead + "\r\n");
  // With a small window the system sends many small packets. Their cost grows with the answer, not
  // with one write. So the limit for a large answer applies to each turn of the thread.
  const auto read_slowly = [&](size_t size) {
    const std::string request = "GET /large?" + std::to_string(size) + kHead + "\r\n";
    EXPECT_GT(Client(port(), "127.0.0.1", 4096).send(request).read().size(), size << 20);
  };
  expect_short("a slow reader", [&] { read_slowly(1); });
  expect_short_turns("turns of a slow reader", [&] { read_slowly(4); });
}

TEST_F(IoTime, OfRequestsInManyPartsIsBounded) {
  const size_t parts = only_runs() ? 300 : 3'000;
  expect_short_in_parts("a header",
                        "GET /health" + kHead + "X: " + std::string(parts, 'x') + "\r\n\r\n");
  expect_short_in_parts("a body", with_length("/detect", kForm, "q=" + std::string(parts, 'x')));
  expect_short_in_parts("a chunk", in_chunks("/detect?q=a", parts, parts));
}

// Checks that the work for one client does not grow with the number of clients. Takes the minimum
// of several times.
using Prepare = std::function<std::function<void()>(size_t size)>;
void expect_no_growth(const char* name, const Prepare& prepare) {
  double ratio = 0;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto few = prepare(500), many = prepare(8'000);
    const auto time = [](const std::function<void()>& act) {
      return ::fovea::testing::least_seconds([&](const std::string&) { act(); }, "", 20);
    };
    ratio = time(many) / std::max(time(few), 1e-9);
    if (ratio < 4) return;
  }
  ADD_FAILURE() << name << ": 16 times as many clients take " << ratio << " times as long";
}

// The server's thread checks whether a model exists. This must not wait for the loading of a model,
// which takes seconds.
TEST(IoTimeWaiting, ForALoadingModelDoesNotOccur) {
  std::latch begun(1), go(1);
  const ServedModel model({"echo", "en", "de"}, echo_package().config, [&] {
    begun.count_down();
    go.wait();
    return echo_package();
  });
  std::thread loading([&] { model.package(); });
  begun.wait();
  auto loaded = std::async(std::launch::async, [&] { return model.loaded(); });
  const bool answered = loaded.wait_for(std::chrono::seconds(20)) == std::future_status::ready;
  EXPECT_TRUE(answered);
  if (answered) {
    EXPECT_FALSE(loaded.get());
  }
  go.count_down();
  loading.join();
  EXPECT_TRUE(model.loaded());
}

TEST(IoTimeGrowth, OfKeysIsNone) {
  expect_no_growth("keys", [](size_t size) {
    return [keys = keys_of(size)] {
      for (int i = 0; i < 100; ++i) EXPECT_FALSE(keys.find("key-none")) << i;
      for (int i = 0; i < 100; ++i) EXPECT_TRUE(keys.find("key-" + std::to_string(i)));
    };
  });
}

TEST(IoTimeGrowth, OfConnectionsIsNone) {
  struct FullTable {
    ConnectionTable table;
    std::list<std::unique_ptr<ConnectionTable::Entry>> entries;
    size_t clients = 0;

    explicit FullTable(size_t size) : table({size, 0}) {
      while (entries.size() < size) add();
    }
    void add() {
      const std::string client = std::to_string(++clients);
      EXPECT_TRUE(table.make_space(client));
      const auto at = entries.insert(entries.end(), nullptr);
      *at = table.add(client, [this, at] { entries.erase(at); });
    }
  };
  expect_no_growth("connections", [](size_t size) {
    return [full = std::make_shared<FullTable>(size)] {
      for (int i = 0; i < 100; ++i) full->add();
    };
  });
}

TEST(IoTimeGrowth, OfWaitingRequestsIsNone) {
  struct WaitingTasks {
    FairQueue queue{1 << 20};
    Result result;
    size_t clients = 0;

    explicit WaitingTasks(size_t size) {
      while (clients < size) add();
    }
    std::shared_ptr<TranslationTask> add() {
      auto task = job_of(1, result);
      task->client = std::to_string(++clients);
      queue.add(task);
      return task;
    }
  };
  expect_no_growth("waiting requests", [](size_t size) {
    return [waiting = std::make_shared<WaitingTasks>(size)] {
      for (int i = 0; i < 100; ++i) waiting->add();
    };
  });
}

}  // namespace
}  // namespace fovea
