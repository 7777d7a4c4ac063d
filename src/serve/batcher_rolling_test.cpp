#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "serve/batcher.h"
#include "support/echo_engine.h"
#include "support/tasks.h"

// Continuous batching: sentences join a running batch.
namespace fovea {
namespace {

using std::chrono::milliseconds;

// A client need not wait for the end of a running batch.
TEST(RollingBatches, SentencesJoinARunningBatch) {
  std::function<void()> on_step;
  const auto model = echo_model("en", "de", [&] { on_step(); });
  Batcher batcher({});
  std::vector<std::string> order;
  Result first, second;
  const auto named = [&](const char* name, std::vector<std::string> sentences, Result& result) {
    auto task = task_of(model, std::move(sentences), result);
    task->finish = [&order, name, finish = task->finish](TaskOutcome outcome, auto translations) {
      order.push_back(name);
      finish(outcome, std::move(translations));
    };
    return task;
  };
  int steps = 0;
  on_step = [&] {
    if (++steps == 20) batcher.add(named("short", {"ab"}, second));
  };
  batcher.add(named("long", {std::string(100, 'a')}, first));
  EXPECT_TRUE(batcher.work(milliseconds(0)));
  EXPECT_EQ(order, (std::vector<std::string>{"short", "long"}));
  EXPECT_EQ(first.texts, std::vector<std::string>{std::string(100, 'a')});
  EXPECT_EQ(second.texts, std::vector<std::string>{"ab"});
  EXPECT_FALSE(batcher.work(milliseconds(0))) << "both were in one batch";
}

// A stream of requests with one batch key. A new request arrives when another ends, so that the
// batch never becomes empty. The search calls `each` at every step. The stream ends after `last`
// requests.
struct Stream {
  std::vector<Result> results;
  std::function<void(int step)> each = nullptr;
  size_t next = 0, most;
  int steps = 0;
  Batcher batcher;
  std::shared_ptr<const ServedModel> model;

  Stream(const BatcherOptions& options, size_t last, size_t sentences = 1)
      : results(last), most(last), batcher(options) {
    model = echo_model("en", "de", [this, sentences] {
      if (each) each(++steps);
      while (next < most && batcher.waiting() < 30) add(sentences);
    });
    add(sentences);
  }
  void add(size_t sentences) {  // with different lengths, so that they end at different steps
    const std::vector<std::string> texts(sentences, std::string(1 + 5 * next % 7, 'a'));
    batcher.add(task_of(model, texts, results[next++]));
  }
  int finished() const {
    int count = 0;
    for (const Result& result : results) count += result.finished;
    return count;
  }
};

// A client whose task ends without a translation gets its answer at once, not at the end of the
// batch.
TEST(RollingBatches, EndedTasksAreAnsweredDuringABatch) {
  Stream s({}, 1000);
  Result empty, late, gone;
  int answered = 0;
  s.each = [&](int step) {
    if (step != 50) return;
    auto slow = task_of(s.model, {"late"}, late);
    slow->deadline = TranslationTask::Clock::now() - milliseconds(1);
    gone.gone = true;
    for (auto& task : {task_of(s.model, {}, empty), slow, task_of(s.model, {"gone"}, gone)}) {
      task->finish = [&, finish = task->finish](TaskOutcome outcome, auto translations) {
        finish(outcome, std::move(translations));
        ++answered;
        EXPECT_LT(s.finished(), 600);
      };
      s.batcher.add(task);
    }
  };
  run_out(s.batcher);
  EXPECT_EQ(answered, 3);
  EXPECT_EQ(late.outcome, TaskOutcome::late);
  EXPECT_EQ(gone.outcome, TaskOutcome::abandoned);
  EXPECT_EQ(s.finished(), 1000);
}

// If the thread must leave, no task joins its batch.
TEST(RollingBatches, AThreadCanLeaveABatch) {
  Stream s({}, 1000);
  s.each = [](int) {};
  EXPECT_TRUE(s.batcher.work(milliseconds(0), [&] { return s.steps >= 400; }));
  const int before = s.finished();
  EXPECT_LT(before, 300);
  run_out(s.batcher);
  EXPECT_EQ(s.finished(), 1000);
}

// Short sentences do not always overtake a long sentence that does not fit immediately.
TEST(RollingBatches, LongSentencesAreNotOvertakenForever) {
  Stream s({.batch_tokens = 100}, 2000);
  Result long_one;
  int before = 0;
  s.each = [&](int step) {
    if (step != 2000) return;
    before = s.finished();
    const auto task = task_of(s.model, {std::string(320, 'a')}, long_one);
    task->finish = [&](TaskOutcome, auto) { EXPECT_LT(s.finished() - before, 800); };
    s.batcher.add(task);
  };
  run_out(s.batcher);
  EXPECT_GT(before, 0);
  EXPECT_EQ(s.finished(), 2000);
}

// In a running batch, short requests overtake long ones, and a long request overtakes many short
// ones.
TEST(RollingBatches, ShortAndLongRequestsShareARunningBatch) {
  Stream s({.batch_tokens = 1000, .batch_sentences = 16}, 60, 40);
  Result small;
  s.each = [&](int step) {
    if (step != 100) return;
    const int before = s.finished();
    const auto task = task_of(s.model, {"short"}, small);
    task->finish = [&, before](TaskOutcome, auto) { EXPECT_LE(s.finished(), before + 2); };
    s.batcher.add(task);
  };
  run_out(s.batcher);
  EXPECT_EQ(s.finished(), 60);
  Stream many({.batch_tokens = 1000, .batch_sentences = 16}, 1000);
  Result large;
  many.each = [&](int step) {
    if (step != 100) return;
    const int before = many.finished();
    const auto task = task_of(many.model, std::vector<std::string>(60, "ab"), large);
    task->finish = [&, before](TaskOutcome, auto) { EXPECT_LT(many.finished(), before + 200); };
    many.batcher.add(task);
  };
  run_out(many.batcher);
  EXPECT_EQ(many.finished(), 1000);
}

// A batch ends if a task with another batch key waits. Otherwise this task would wait forever.
TEST(RollingBatches, NoTaskJoinsWhileAnotherQueueWaits) {
  std::function<void()> on_step;
  const auto model = echo_model("en", "de", [&] { on_step(); });
  Batcher batcher({});
  std::vector<Result> same(300);
  Result first, other;
  size_t next = 0;
  int steps = 0;
  on_step = [&] {
    if (++steps == 5) {
      const auto task = task_of(model, {"other"}, other);
      task->decoding.beam = 3;
      batcher.add(task);
    }
    if (other.finished == 0 && next < same.size())
      batcher.add(task_of(model, {"ab"}, same[next++]));
  };
  batcher.add(task_of(model, {"abcdefgh"}, first));
  run_out(batcher);
  EXPECT_EQ(other.texts, std::vector<std::string>{"other"});
  EXPECT_LT(next, 150u) << "a stream with one batch key delayed another key";
  for (size_t i = 0; i < next; ++i) EXPECT_EQ(same[i].finished, 1);
}

}  // namespace
}  // namespace fovea
