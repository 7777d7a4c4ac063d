#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "serve/batcher.h"
#include "support/echo_engine.h"
#include "support/tasks.h"

// One client floods the batcher. Other clients must not notice it.
namespace fovea {
namespace {

using std::chrono::milliseconds;

std::shared_ptr<TranslationTask> task_by(const std::string& client,
                                         const std::shared_ptr<const ServedModel>& model,
                                         std::vector<std::string> sentences, Result& result) {
  auto task = task_of(model, std::move(sentences), result);
  task->client = client;
  return task;
}

// A client that fills its share of the queue with requests of these sentences. `each` runs at each
// step of a batch, for other clients.
struct Flood {
  std::vector<std::string> sentences;
  int64_t beam = 2;
  std::shared_ptr<const ServedModel> model;
  size_t most = 200;  // number of requests
  std::vector<Result> results = std::vector<Result>(200);
  size_t next = 0;
  int64_t steps = 0;
  std::function<void(int64_t step)> each = nullptr;
  Batcher batcher;

  Flood(const BatcherOptions& options, std::vector<std::string> texts,
        std::shared_ptr<const ServedModel> served = echo_model("en", "de"))
      : sentences(std::move(texts)), model(std::move(served)), batcher(options) {
    batcher.observe = [this](const BatchStep&) {
      ++steps;
      refill();
      if (each) each(steps);
    };
  }
  void refill() {
    while (next < most) {
      const auto task = task_by("flood", model, sentences, results[next]);
      task->decoding.beam = beam;
      if (!batcher.add(task)) return;
      ++next;
    }
  }
  void run() {
    refill();
    run_out(batcher);
  }
};

// The number of steps from the arrival of "abcd" of another client to its translation.
int64_t steps_of_other(Flood& flood) {
  Result other;
  int64_t arrived = 0, done = 0;
  flood.each = [&](int64_t step) {
    if (step != 20) return;
    const auto task = task_by("other", flood.model, {"abcd"}, other);
    task->finish = [&, finish = task->finish](TaskOutcome outcome, auto translations) {
      done = flood.steps;
      finish(outcome, std::move(translations));
    };
    arrived = step;
    EXPECT_TRUE(flood.batcher.add(task)) << "rejected because of the flood";
  };
  flood.run();
  EXPECT_EQ(other.texts, std::vector<std::string>{"abcd"});
  for (size_t i = 0; i < flood.most; ++i) {
    EXPECT_EQ(flood.results[i].outcome, TaskOutcome::done) << i;
    EXPECT_EQ(flood.results[i].texts, flood.sentences) << i;
  }
  return done - arrived;
}

const std::string kLong(100, 'a');

TEST(Fairness, AFloodOfSmallRequestsDelaysNoOtherClient) {
  Flood flood({}, {kLong});
  EXPECT_LE(steps_of_other(flood), 6) << "four letters, the end and one step of the flood";
}

TEST(Fairness, AFloodOfLargeTextsDelaysNoOtherClient) {
  Flood flood({}, std::vector<std::string>(100, kLong));
  flood.most = 4;
  EXPECT_LE(steps_of_other(flood), 6);
}

TEST(Fairness, AFloodWithALargeBeamDelaysNoOtherClient) {
  Flood flood({}, {kLong});
  flood.beam = 16;
  flood.most = 40;
  EXPECT_LE(steps_of_other(flood), 6);
}

TEST(Fairness, AFloodOfClosedBatchesDelaysNoOtherClient) {
  Flood flood({.delay = {}}, {kLong}, closed_echo_model("en", "de"));
  EXPECT_LE(steps_of_other(flood), 6);
}

// Without interruption a client waits at most for the running batch. The next batch is one of light
// clients.
TEST(Fairness, WithoutInterruptionLightClientsGetTheNextBatch) {
  Flood flood({.interrupts = false}, {kLong});
  EXPECT_LE(steps_of_other(flood), 110) << "100 letters of the running batch";
}

// Light clients leave the flood its share, even if they never stop.
TEST(Fairness, AFloodIsNotStarved) {
  Flood flood({}, {kLong});
  flood.most = 16;
  std::vector<Result> light(4000);
  size_t next = 0, before = 0;
  flood.each = [&](int64_t) {  // eight clients that send a new request after each answer
    for (size_t c = 0; c < 8 && next < light.size(); ++c)
      if (next < 8 || light[next - 8].finished > 0) {
        const std::string client = "light " + std::to_string(next % 8);
        flood.batcher.add(task_by(client, flood.model, {"abcdefgh"}, light[next++]));
      }
    if (flood.results[15].finished == 0) before = next;
  };
  flood.run();
  EXPECT_LT(before, light.size()) << "the flood was starved";
  EXPECT_GT(before, 8u);
}

// Two heavy clients have equal shares in any order of arrival.
TEST(Fairness, HeavyClientsShareEvenly) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.batch_sentences = 16, .queue_tokens = 1 << 20});
  Result first[20], second;
  const std::vector<std::string> text(100, "abcdefgh");
  for (Result& result : first) batcher.add(task_by("first", model, text, result));
  batcher.add(task_by("second", model, text, second));
  int others = -1;
  second.finished = 0;
  int64_t steps = 0;
  batcher.observe = [&](const BatchStep&) {
    ++steps;
    if (second.finished == 0) {
      others = 0;
      for (const Result& result : first) others += result.finished;
    }
  };
  run_out(batcher);
  EXPECT_GE(others, 0);
  EXPECT_LE(others, 2) << "of twenty earlier requests of equal size";
}

TEST(Fairness, NoClientIsRejectedBecauseOfAnother) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.queue_tokens = 1000});
  std::vector<Result> results(3000);
  size_t next = 0;
  const auto add = [&](const std::string& client, size_t letters) {
    return batcher.add(task_by(client, model, {std::string(letters, 'a')}, results[next++]));
  };
  while (add("flood", 40)) continue;
  EXPECT_EQ(batcher.waiting_cost(), 996);
  EXPECT_FALSE(batcher.full()) << "the queue has space for others";
  EXPECT_FALSE(batcher.would_accept("flood", 12));
  EXPECT_TRUE(batcher.would_accept("other", 12));
  for (int i = 0; i < 80; ++i) EXPECT_TRUE(add("other", 40)) << i;
  EXPECT_TRUE(add("third", 10'000)) << "one request of any size";
  EXPECT_TRUE(batcher.full());
  run_out(batcher);
  EXPECT_FALSE(batcher.full());
}

// Several flooding clients share the queue and leave space for others.
TEST(Fairness, ManyFloodsShareTheQueue) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.queue_tokens = 1000});
  std::vector<Result> results(5000);
  size_t next = 0;
  for (int round = 0; round < 100; ++round)
    for (int c = 0; c < 20; ++c)
      batcher.add(task_by(std::to_string(c), model, {std::string(40, 'a')}, results[next++]));
  EXPECT_LT(batcher.waiting_cost(), 4000);
  EXPECT_TRUE(batcher.add(task_by("new", model, {kLong}, results[next++])));
  run_out(batcher);
}

TEST(Fairness, CostGrowsWithBeamAndAlternatives) {
  DecodeOptions decoding;
  EXPECT_EQ(translation_cost(10, decoding), 10);
  decoding.beam = 1;
  EXPECT_EQ(translation_cost(10, decoding), 10) << "at least the default beam of 4";
  decoding.beam = 16;
  EXPECT_EQ(translation_cost(10, decoding), 40);
  decoding.beam = 5;
  EXPECT_EQ(translation_cost(3, decoding), 4);
  decoding.n_best = 8;
  EXPECT_EQ(translation_cost(10, decoding), 20);
  // With 16 hypotheses a batch has a quarter of the sentences.
  const auto model = echo_model("en", "de");
  Batcher batcher({.batch_sentences = 16});
  int64_t most = 0;
  batcher.observe = [&](const BatchStep& step) { most = std::max(most, step.sentences); };
  Result result;
  const auto task = task_by("a", model, std::vector<std::string>(50, "ab"), result);
  task->decoding.beam = 16;
  batcher.add(task);
  EXPECT_EQ(batcher.waiting_cost(), 50 * 8);
  run_out(batcher);
  EXPECT_EQ(most, 4);
}

TEST(Fairness, TheNumberOfKnownClientsIsBounded) {
  FairQueue queue(1000);
  const auto model = echo_model("en", "de");
  std::vector<Result> results(5000);
  std::vector<std::shared_ptr<TranslationTask>> tasks;
  for (size_t i = 0; i < results.size(); ++i) {
    tasks.push_back(task_by(std::to_string(i), model, {"ab"}, results[i]));
    queue.add(tasks.back());
    if (i == 0) continue;  // one client stays active, so that the queue stores the counts of others
    queue.take(*tasks.back());
    queue.erase_taken(*tasks.back()->queue);
    queue.release(*tasks.back(), 1);
  }
  EXPECT_LE(queue.clients(), 1100u);
  EXPECT_EQ(queue.tasks(), 1u);
}

// If the memory does not suffice to begin a batch, the thread continues.
TEST(Fairness, AThreadSurvivesABatchThatCannotBegin) {
  const auto model = echo_model("en", "de");
  Batcher batcher({});
  Result result;
  const auto task = task_by("a", model, {"abcd"}, result);
  int asked = 0;
  task->abandoned = [&] { return ++asked == 1 ? throw std::bad_alloc() : false; };
  batcher.add(task);
  EXPECT_NO_THROW(run_out(batcher));
  EXPECT_EQ(result.texts, std::vector<std::string>{"abcd"});
  EXPECT_EQ(batcher.waiting_cost(), 0);
}

}  // namespace
}  // namespace fovea
