#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "serve/batcher.h"
#include "support/echo_engine.h"
#include "support/tasks.h"

// Several worker threads share a batcher.
namespace fovea {
namespace {

using std::chrono::milliseconds;

// Worker threads that run batches until the destructor stops them.
class Workers {
 public:
  Workers(Batcher& batcher, int64_t count) : batcher_(batcher) {
    for (int64_t i = 0; i < count; ++i)
      threads_.emplace_back([&batcher](const std::stop_token& stop) {
        while (!stop.stop_requested()) batcher.work(milliseconds(5));
      });
  }
  ~Workers() {
    for (std::jthread& thread : threads_) thread.request_stop();
    batcher_.wake();
  }

 private:
  Batcher& batcher_;
  std::vector<std::jthread> threads_;
};

void wait_for(const std::function<bool()>& done) {
  for (int i = 0; !done() && i < 20'000; ++i) std::this_thread::sleep_for(milliseconds(1));
  ASSERT_TRUE(done());
}

TEST(BatcherThreads, ThreadsShareARequest) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  const auto model = echo_model("en", "de", [&] {
    {
      const std::lock_guard hold(mutex);
      threads.insert(std::this_thread::get_id());
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));  // lets the other thread wake up
  });
  Batcher batcher({.workers = 2});
  std::atomic<int64_t> most = 0;
  batcher.observe = [&](const BatchStep& step) {
    for (int64_t seen = most;
         seen < step.sentences && !most.compare_exchange_weak(seen, step.sentences);)
      continue;
  };
  Result result;
  std::vector<std::string> sentences, delivered(200);
  for (int i = 0; i < 200; ++i) sentences.push_back("sentence " + std::to_string(i));
  auto task = task_of(model, sentences, result);
  task->on_sentence = [&](size_t sentence, const Translation& found) {
    delivered[sentence] += found.text;
  };
  std::atomic<bool> done = false;
  task->finish = [&, finish = task->finish](TaskOutcome outcome, auto translations) {
    finish(outcome, std::move(translations));
    done = true;
  };
  const Workers workers(batcher, 2);
  batcher.add(task);
  wait_for([&] { return done.load(); });
  EXPECT_EQ(result.outcome, TaskOutcome::done);
  EXPECT_EQ(result.texts, sentences);
  EXPECT_EQ(delivered, sentences) << "each sentence was delivered once";
  EXPECT_EQ(threads.size(), 2u);
  EXPECT_EQ(most, 32) << "half of the limit of a batch";
}

TEST(BatcherThreads, AFailedDeliveryFailsOnlyItsTask) {
  const auto model = echo_model("en", "de");
  Batcher batcher({});
  Result bad, good;
  const auto failing = task_of(model, {"a", "b"}, bad), other = task_of(model, {"c", "d"}, good);
  failing->on_sentence = [](size_t, const Translation&) { throw std::runtime_error("no room"); };
  batcher.add(failing);
  batcher.add(other);
  while (batcher.work(std::chrono::milliseconds(0))) continue;
  EXPECT_EQ(bad.outcome, TaskOutcome::failed);
  EXPECT_EQ(good.outcome, TaskOutcome::done);
  EXPECT_EQ(good.texts, (std::vector<std::string>{"c", "d"}));
}

// All threads together translate at most as many sentences as one batch may have.
TEST(BatcherThreads, ThreadsShareTheLimitOfABatch) {
  std::atomic<int> at_once = 0, most = 0;
  const auto model = echo_model("en", "de", [&] {
    most = std::max<int>(most, ++at_once);
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    --at_once;
  });
  for (const int64_t tokens : {1, 1000}) {
    most = 0;
    Batcher batcher({.batch_tokens = tokens, .workers = 3});
    std::vector<Result> results(40);
    std::atomic<int> done = 0;
    {
      const Workers workers(batcher, 3);
      for (Result& result : results) {
        const auto task = task_of(model, {"ab"}, result);
        task->decoding.beam = 1;
        task->finish = [&](TaskOutcome, auto) { ++done; };
        batcher.add(task);
      }
      wait_for([&] { return done == 40; });
    }
    EXPECT_EQ(most > 1, tokens > 1);
  }
}

TEST(BatcherThreads, NoBatchRunsDuringAPause) {
  std::atomic<int> at_once = 0;
  const auto model = echo_model("en", "de", [&] {
    ++at_once;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    --at_once;
  });
  Batcher batcher({.workers = 2});
  std::vector<Result> results(400);
  std::atomic<int> done = 0;
  const Workers workers(batcher, 2);
  for (Result& result : results) {
    const auto task = task_of(model, {"abcd"}, result);
    task->finish = [&](TaskOutcome, auto) { ++done; };
    batcher.add(task);
  }
  int paused = 0;
  while (done < 400) {
    batcher.pause([&] {
      const int before = done;
      std::this_thread::sleep_for(milliseconds(2));
      EXPECT_EQ(at_once, 0);
      EXPECT_EQ(done, before);
      ++paused;
    });
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  EXPECT_GT(paused, 1);
}

TEST(BatcherThreads, ThreadsRunOneJobAtATime) {
  Batcher batcher({.workers = 3});
  std::vector<Result> results(20);
  std::atomic<int> at_once = 0, most = 0, done = 0;
  const Workers workers(batcher, 3);
  for (Result& result : results) {
    const auto job = job_of(1, result);
    job->finish = [&](TaskOutcome, auto) {
      most = std::max<int>(most, ++at_once);
      std::this_thread::sleep_for(milliseconds(1));
      --at_once;
      ++done;
    };
    batcher.add(job);
  }
  wait_for([&] { return done == 20; });
  EXPECT_EQ(most, 1);
}

}  // namespace
}  // namespace fovea
