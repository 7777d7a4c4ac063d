#include "serve/batcher.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <thread>

#include "support/echo_engine.h"
#include "support/tasks.h"

namespace fovea {
namespace {

using std::chrono::milliseconds;

// An observer that records the number of sentences that begin together.
auto began_in(std::vector<int64_t>& batches) {
  return [&](const BatchStep& step) {
    if (step.began > 0) batches.push_back(step.began);
  };
}

TEST(Batcher, JoinsTheSentencesOfManyClients) {
  const auto model = echo_model("en", "de");
  Batcher batcher({});
  std::vector<int64_t> batches;
  batcher.observe = began_in(batches);
  std::vector<Result> results(10);
  for (size_t i = 0; i < results.size(); ++i)
    ASSERT_TRUE(batcher.add(task_of(model, {"client " + std::to_string(i), "ok"}, results[i])));
  EXPECT_EQ(batcher.waiting(), 10u);
  run_out(batcher);
  EXPECT_EQ(batches, std::vector<int64_t>{20});
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_EQ(results[i].finished, 1);
    EXPECT_EQ(results[i].outcome, TaskOutcome::done);
    EXPECT_EQ(results[i].texts, (std::vector<std::string>{"client " + std::to_string(i), "ok"}));
  }
  EXPECT_EQ(batcher.waiting_cost(), 0);
}

TEST(Batcher, SeparatesOptionsAndModels) {
  const auto one = echo_model("en", "de"), two = echo_model("de", "en");
  Batcher batcher({});
  std::vector<int64_t> batches;
  batcher.observe = began_in(batches);
  std::vector<Result> results(4);
  for (size_t i = 0; i < results.size(); ++i) {
    auto task = task_of(i % 2 ? one : two, {std::to_string(i)}, results[i]);
    if (i == 3) task->decoding.beam = 3;
    batcher.add(task);
  }
  run_out(batcher);
  EXPECT_EQ(batches, (std::vector<int64_t>{2, 1, 1}));
  for (size_t i = 0; i < results.size(); ++i) EXPECT_EQ(results[i].texts.at(0), std::to_string(i));
}

// With closed batches, each call of work() runs one batch.
TEST(Batcher, ALongRequestDoesNotDelayAShortOne) {
  const auto model = closed_echo_model("en", "de");
  Batcher batcher({.batch_tokens = 100, .batch_sentences = 16, .delay = {}});
  Result large, small;
  batcher.add(task_of(model, std::vector<std::string>(200, "word"), large));
  batcher.add(task_of(model, {"short"}, small));
  batcher.work(milliseconds(0));
  EXPECT_EQ(small.finished, 1);
  EXPECT_EQ(large.finished, 0);
  run_out(batcher);
  EXPECT_EQ(large.outcome, TaskOutcome::done);
  EXPECT_EQ(large.texts, std::vector<std::string>(200, "word"));
}

// Requests of equal size are answered in the order of arrival.
TEST(Batcher, RequestsOfEqualSizeAreServedInOrder) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16});
  std::vector<Result> results(6);
  std::vector<size_t> order;
  for (size_t i = 0; i < results.size(); ++i) {
    const auto task = task_of(model, std::vector<std::string>(40, "ab"), results[i]);
    task->finish = [&order, i](TaskOutcome, std::vector<Translation>) { order.push_back(i); };
    batcher.add(task);
  }
  run_out(batcher);
  EXPECT_EQ(order, (std::vector<size_t>{0, 1, 2, 3, 4, 5}));
}

// Many long requests do not delay a short one, and many short ones do not delay a long one.
TEST(Batcher, ManyLongRequestsDoNotDelayAShortOne) {
  const auto model = closed_echo_model("en", "de");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16, .delay = {}});
  std::vector<Result> large(6);
  Result small;
  for (Result& result : large)
    batcher.add(task_of(model, std::vector<std::string>(400, "ab"), result));
  batcher.add(task_of(model, {"short"}, small));
  int batches = 0;
  for (; small.finished == 0 && batches < 200; ++batches) batcher.work(milliseconds(0));
  EXPECT_EQ(batches, 1) << "of 151 batches in total";
  run_out(batcher);
  for (const Result& result : large) EXPECT_EQ(result.texts.size(), 400u);
}

TEST(Batcher, ManyShortRequestsDoNotDelayALongOne) {
  const auto model = closed_echo_model("en", "de");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16, .delay = {}});
  std::vector<Result> small(600);
  Result large;
  batcher.add(task_of(model, std::vector<std::string>(130, "ab"), large));
  for (Result& result : small) batcher.add(task_of(model, {"ab"}, result));
  int batches = 0;
  for (; large.finished == 0 && batches < 200; ++batches) batcher.work(milliseconds(0));
  EXPECT_LE(batches, 10) << "it has four fifths of each batch of 16";
  run_out(batcher);
  for (const Result& result : small) EXPECT_EQ(result.finished, 1);
}

// The number of batches until a task with another model or other options is done.
int batches_until_done(Batcher& batcher, const Result& result) {
  int batches = 0;
  for (; result.finished == 0 && batches < 500; ++batches) batcher.work(milliseconds(0));
  return batches;
}

TEST(Batcher, ALongRequestDoesNotDelayOtherModelsOrOptions) {
  const auto one = closed_echo_model("en", "de"), two = closed_echo_model("de", "en");
  for (const bool other_model : {true, false}) {
    Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16, .delay = {}});
    Result large, small, third;
    batcher.add(task_of(one, std::vector<std::string>(400, "ab"), large));
    batcher.work(milliseconds(0));
    const auto task = task_of(other_model ? two : one, {"short"}, small);
    if (!other_model) task->decoding.beam = 3;
    batcher.add(task);
    EXPECT_LE(batches_until_done(batcher, small), 2);
    const auto later = task_of(one, {"later"}, third);
    later->decoding.length_penalty = 1;
    batcher.add(later);
    EXPECT_LE(batches_until_done(batcher, third), 2);
    EXPECT_EQ(large.finished, 0);
    run_out(batcher);
    EXPECT_EQ(large.texts, std::vector<std::string>(400, "ab"));
    EXPECT_EQ(small.texts, std::vector<std::string>{"short"});
  }
}

// Two queues have equal shares, whichever was first: 25 batches each.
TEST(Batcher, LongRequestsWithTwoBatchKeysTakeTurns) {
  const auto one = echo_model("en", "de"), two = echo_model("de", "en");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16});
  Result first, second;
  batcher.add(task_of(one, std::vector<std::string>(400, "ab"), first));
  batcher.add(task_of(two, std::vector<std::string>(400, "cd"), second));
  EXPECT_EQ(batches_until_done(batcher, first), 49);
  EXPECT_EQ(batches_until_done(batcher, second), 1);
}

// If a stream of tasks has a new batch key each time, a long request still gets every other batch.
TEST(Batcher, NoRequestStarves) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16});
  Result large;
  std::vector<Result> small(200);
  batcher.add(task_of(model, std::vector<std::string>(400, "ab"), large));
  size_t batches = 0;
  for (; large.finished == 0 && batches < small.size(); ++batches) {
    const auto task = task_of(model, {"ab"}, small[batches]);
    task->decoding.length_penalty = 0.01 * static_cast<double>(batches);
    batcher.add(task);
    batcher.work(milliseconds(0));
  }
  EXPECT_LE(batches, 50u);
  run_out(batcher);
  for (size_t i = 0; i < batches; ++i) EXPECT_EQ(small[i].finished, 1) << i;
}

TEST(Batcher, TurnsCostNoBatchWithASingleKey) {
  const auto model = echo_model("en", "de"), other = echo_model("de", "en");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16});
  std::vector<int64_t> batches;
  batcher.observe = began_in(batches);
  std::vector<Result> results(11);
  for (size_t i = 0; i < 10; ++i)
    batcher.add(task_of(model, std::vector<std::string>(40, "ab"), results[i]));
  batcher.add(task_of(other, {"ab"}, results[10]));
  run_out(batcher);
  std::vector<int64_t> full(26, 16);
  full[1] = 1;
  EXPECT_EQ(batches, full);
}

TEST(Batcher, AtMostOneJobRunsBetweenTwoBatches) {
  const auto one = echo_model("en", "de");
  Batcher batcher({.batch_tokens = 1000, .batch_sentences = 16});
  std::string order;
  batcher.observe = [&](const BatchStep& step) {
    if (step.began > 0) order += step.began == 1 ? '1' : 'b';
  };
  Result large, explained;
  std::vector<Result> jobs(5);
  for (Result& result : jobs) {
    const auto job = job_of(10, result);
    job->finish = [&](TaskOutcome outcome, const std::vector<Translation>&) {
      order += 'j';
      result.outcome = outcome;
    };
    batcher.add(job);
  }
  const auto alone = task_of(one, {"explain me"}, explained);
  alone->alone = true;
  batcher.add(task_of(one, std::vector<std::string>(100, "ab"), large));
  batcher.add(alone);
  run_out(batcher);
  EXPECT_EQ(order, "jbjbjbjbjb1bb");
  for (const Result& result : jobs) EXPECT_EQ(result.outcome, TaskOutcome::done);
  EXPECT_EQ(explained.texts, std::vector<std::string>{"explain me"});
  EXPECT_EQ(large.texts.size(), 100u);
}

TEST(Batcher, JobsCostTokensAndHaveDeadlines) {
  Batcher batcher({.queue_tokens = 100});
  Result first, refused, late, gone, last;
  EXPECT_TRUE(batcher.add(job_of(60, first)));
  EXPECT_FALSE(batcher.add(job_of(60, refused)));
  const auto slow = job_of(20, late);
  slow->deadline = TranslationTask::Clock::now() - milliseconds(1);
  EXPECT_TRUE(batcher.add(slow));
  EXPECT_TRUE(batcher.add(job_of(20, gone)));
  EXPECT_FALSE(batcher.add(job_of(1, last)));
  EXPECT_EQ(batcher.waiting_cost(), 100);
  gone.gone = true;
  run_out(batcher);
  EXPECT_EQ(batcher.waiting_cost(), 0);
  EXPECT_EQ(first.outcome, TaskOutcome::done);
  EXPECT_EQ(late.outcome, TaskOutcome::late);
  EXPECT_EQ(gone.outcome, TaskOutcome::abandoned);
  EXPECT_EQ(first.finished + refused.finished + late.finished + gone.finished, 3);
}

TEST(Batcher, RefusesTasksThatDoNotFitIntoTheQueue) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.queue_tokens = 20});
  Result large, next, third;
  EXPECT_TRUE(batcher.add(task_of(model, std::vector<std::string>(100, "abcd"), large)))
      << "an empty queue accepts any task";
  EXPECT_TRUE(batcher.full());
  EXPECT_FALSE(batcher.add(task_of(model, {"abcd"}, next)));
  run_out(batcher);
  EXPECT_FALSE(batcher.full());
  EXPECT_TRUE(batcher.add(task_of(model, {"abcd"}, third)));
  run_out(batcher);
  EXPECT_EQ(large.finished + next.finished + third.finished, 2);
}

// The limit of all clients together is four times the limit of one client.
TEST(Batcher, IsFullIfItWouldRefuseAnOrdinaryRequest) {
  for (const auto& [limit, most] : {std::pair<int64_t, int64_t>{100, 336}, {10'000, 39'000}}) {
    Batcher batcher({.queue_tokens = limit});
    Result result[2];
    EXPECT_TRUE(batcher.add(job_of(most, result[0])));
    EXPECT_FALSE(batcher.full()) << limit;
    const auto next = job_of(1, result[1]);
    next->client = "another";
    EXPECT_TRUE(batcher.add(next));
    EXPECT_TRUE(batcher.full()) << limit;
    run_out(batcher);
    EXPECT_FALSE(batcher.full()) << limit;
  }
}

TEST(Batcher, DropsClientsThatLeaveAndAnswersOthers) {
  std::vector<Result> results(3);
  std::atomic<int> steps = 0;
  const auto model = echo_model("en", "de", [&] {
    if (++steps == 7) results[1].gone = true;  // during decoding
  });
  Batcher batcher({});
  results[0].gone = true;
  std::vector<std::vector<std::string>> asked = {
      {"zero"}, {"one is long and leaves"}, {"two stays"}};
  for (size_t i = 0; i < 3; ++i) batcher.add(task_of(model, asked[i], results[i]));
  run_out(batcher);
  EXPECT_EQ(results[0].outcome, TaskOutcome::abandoned);
  EXPECT_EQ(results[1].outcome, TaskOutcome::abandoned);
  EXPECT_EQ(results[2].outcome, TaskOutcome::done);
  EXPECT_EQ(results[2].texts, asked[2]);
  EXPECT_LT(steps, 60) << "the search for clients that left must end";
  EXPECT_EQ(batcher.waiting_cost(), 0);
}

TEST(Batcher, ATaskPastItsDeadlineIsLate) {
  const auto model = echo_model("en", "de");
  Batcher batcher({});
  Result late, good;
  auto task = task_of(model, {"late"}, late);
  task->deadline = TranslationTask::Clock::now() - milliseconds(1);
  batcher.add(task);
  batcher.add(task_of(model, {"good"}, good));
  run_out(batcher);
  EXPECT_EQ(late.outcome, TaskOutcome::late);
  EXPECT_EQ(good.outcome, TaskOutcome::done);
}

TEST(Batcher, AfterAFailedBatchTheNextOneWorks) {
  bool broken = true;
  const auto model = echo_model("en", "de", [&] {
    if (broken) throw std::runtime_error("no memory");
  });
  Batcher batcher({});
  Result bad, good;
  batcher.add(task_of(model, std::vector<std::string>(200, "ab"), bad));
  batcher.work(milliseconds(0));
  broken = false;
  batcher.add(task_of(model, {"ab"}, good));
  run_out(batcher);
  EXPECT_EQ(bad.outcome, TaskOutcome::failed);
  EXPECT_EQ(bad.finished, 1);
  EXPECT_EQ(good.outcome, TaskOutcome::done);
}

TEST(Batcher, ATaskWithoutSentencesIsFinished) {
  Batcher batcher({});
  Result result;
  batcher.add(task_of(echo_model("en", "de"), {}, result));
  run_out(batcher);
  EXPECT_EQ(result.outcome, TaskOutcome::done);
}

TEST(Batcher, WaitsOnlyWhileTasksArrive) {
  const auto model = closed_echo_model("en", "de");
  const auto delay = milliseconds(2000);
  Batcher batcher({.delay = delay});
  Result first, second;
  const auto begin = TranslationTask::Clock::now();
  batcher.add(task_of(model, {"one"}, first));
  std::jthread other([&] {
    std::this_thread::sleep_for(milliseconds(20));
    batcher.add(task_of(model, {"two"}, second));
  });
  batcher.work(milliseconds(0));
  const auto waited = TranslationTask::Clock::now() - begin;
  EXPECT_EQ(first.texts, std::vector<std::string>{"one"});
  EXPECT_EQ(second.texts, std::vector<std::string>{"two"});
  EXPECT_GE(waited, milliseconds(20) + delay / 5);
  EXPECT_LT(waited, delay);
}

// A client that got an answer sends its next request at once. This request shares a batch with a
// task that has waited for long.
TEST(Batcher, AfterABatchWaitingTasksWaitForTheNextRequests) {
  const auto model = closed_echo_model("en", "de");
  Batcher batcher({.delay = std::chrono::seconds(2)});
  std::vector<int64_t> batches;
  batcher.observe = began_in(batches);
  Result first, waiting, again;
  std::thread asks;
  auto task = task_of(model, {"first"}, first);
  task->finish = [&](TaskOutcome, std::vector<Translation>) {
    const auto other = task_of(model, {"waiting"}, waiting);
    batcher.add(other);
    other->arrived -= std::chrono::hours(1);
    asks = std::thread([&] {
      std::this_thread::sleep_for(milliseconds(20));
      batcher.add(task_of(model, {"again"}, again));
    });
  };
  batcher.add(task);
  batcher.work(milliseconds(0));
  batcher.work(milliseconds(0));
  asks.join();
  EXPECT_EQ(batches, (std::vector<int64_t>{1, 2}));
}

TEST(Batcher, AcceptsTasksFromManyThreads) {
  const auto model = echo_model("en", "de");
  Batcher batcher({.batch_tokens = 200, .delay = milliseconds(1)});
  constexpr size_t kThreads = 4, kEach = 25;
  std::vector<Result> results(kThreads * kEach);
  std::atomic<size_t> added{0};
  std::vector<std::thread> clients;
  for (size_t t = 0; t < kThreads; ++t)
    clients.emplace_back([&, t] {
      for (size_t i = t * kEach; i < (t + 1) * kEach; ++i, ++added)
        batcher.add(task_of(model, {"sentence " + std::to_string(i)}, results[i]));
    });
  while (added < results.size() || batcher.waiting() > 0) batcher.work(milliseconds(1));
  for (std::thread& client : clients) client.join();
  for (size_t i = 0; i < results.size(); ++i)
    EXPECT_EQ(results[i].texts.at(0), "sentence " + std::to_string(i));
}

}  // namespace
}  // namespace fovea
