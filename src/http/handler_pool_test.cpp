#include "http/handler_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <memory>
#include <stdexcept>

namespace fovea {
namespace {

// A pool with one thread, which is busy until `go` counts down.
struct BusyPool {
  explicit BusyPool(size_t capacity) : pool(1, capacity) {
    std::latch begun(1);
    pool.add("first", [&] {
      begun.count_down();
      go.wait();
    });
    begun.wait();
  }
  std::latch go{1};
  HandlerPool pool;
};

TEST(HandlerPool, ClientsTakeTurns) {
  BusyPool busy(100);
  std::string order;
  std::latch done(10);
  const auto add = [&](const char* client) {
    EXPECT_TRUE(busy.pool.add(client, [&, client] {
      order += client;
      done.count_down();
    }));
  };
  for (int i = 0; i < 8; ++i) add("f");
  add("a");
  add("b");
  busy.go.count_down();
  done.wait();
  EXPECT_EQ(order, "fabfffffff");
}

TEST(HandlerPool, HasACapacityAndSurvivesExceptions) {
  BusyPool busy(2);
  std::latch done(1);
  EXPECT_TRUE(busy.pool.add("a", [] { throw std::runtime_error("broken"); }));
  EXPECT_TRUE(busy.pool.add("a", [&] { done.count_down(); }));
  EXPECT_FALSE(busy.pool.add("b", [] {}));
  busy.go.count_down();
  done.wait();
}

TEST(HandlerPool, StopDiscardsWaitingJobs) {
  BusyPool busy(1 << 20);
  const auto held = std::make_shared<int>();
  EXPECT_TRUE(busy.pool.add("a", [held] { FAIL(); }));
  std::thread stop([&] { busy.pool.stop(); });
  while (busy.pool.add("a", [] {})) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  busy.go.count_down();
  stop.join();
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace fovea
