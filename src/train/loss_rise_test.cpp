#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "effort.h"
#include "support/tiny_training.h"

namespace fovea {
namespace {

// A learning rate that is far too large for five updates, as from a wrong schedule.
constexpr double kTooFast = 1000;
constexpr int64_t kFastUpdates = 5;

class RisesTest : public TrainerTest {
 protected:
  void SetUp() override {
    TrainerTest::SetUp();
    options_.train.updates = 300;
    options_.valid.every = 100;
    options_.checkpoint.every = 20;
    options_.schedule.kind = ScheduleKind::constant;
    rate_ = options_.schedule.lr;
  }

  // Trains with loss rises that begin at the updates `begins`, counted by drawn batches. Calls
  // `also` at every update.
  RunOutcome train_with_rises(const std::string& name, const std::vector<int64_t>& begins,
                              const std::function<void(int64_t, ParameterStore&)>& also = nullptr) {
    testing::internal::CaptureStderr();
    const RunOutcome outcome = train(name, [&](int64_t drawn, ParameterStore& store) {
      const int64_t update = drawn / options_.train.accumulate;
      const int64_t next = update + 1;  // the rate of this update is already set
      options_.schedule.lr = rate_;
      for (size_t i = 0; i < begins.size(); ++i)  // each rise halves the rate
        if (next >= begins[i] && next < begins[i] + kFastUpdates)
          options_.schedule.lr = std::ldexp(kTooFast * rate_, static_cast<int>(i));
      if (also) also(update, store);
    });
    log_ = testing::internal::GetCapturedStderr();
    return outcome;
  }

  bool logged(const std::string& text) const { return log_.find(text) != std::string::npos; }

  double rate_ = 0;
  std::string log_;
};

TEST_F(RisesTest, AreUndone) {
  train("clean");
  EXPECT_EQ(state_.rises, 0);
  const double clean = *read_metrics(directory("clean") + "/metrics.jsonl").back().value("ppl");
  for (const int64_t every : {1, 4, 50}) {
    options_.checkpoint.every = every;
    const std::string name = "rise-" + std::to_string(every);
    train_with_rises(name, {200});
    EXPECT_EQ(state_.rises, 1) << log_;
    EXPECT_EQ(state_.rollbacks, 0);
    EXPECT_EQ(state_.rate_factor, 0.5);
    EXPECT_EQ(state_.update, 300);
    const size_t at = log_.find(" skipped: loss ");
    ASSERT_NE(at, std::string::npos) << log_;
    const int64_t found = std::stoll(log_.substr(log_.rfind(' ', at - 1) + 1));
    EXPECT_LE(found, 220);
    const std::string rolled_back = ": rolled back to update ";
    const size_t back = log_.find(rolled_back);
    ASSERT_NE(back, std::string::npos) << log_;
    EXPECT_LE(std::stoll(log_.substr(back + rolled_back.size())), 199);
    const auto last = read_metrics(directory(name) + "/metrics.jsonl").back();
    EXPECT_LT(*last.value("ppl"), 1.05 * clean);
  }
}

TEST_F(RisesTest, AreUndoneInAResumedRun) {
  for (const int64_t keep : {1, 3}) {
    options_.checkpoint.keep = keep;
    const std::string straight = "straight-" + std::to_string(keep);
    train_with_rises(straight, {200});
    EXPECT_EQ(state_.rises, 1) << log_;
    for (const int64_t stop : {150, 181, 199, 200, 202, 204}) {
      if (only_runs() && (keep != 1 || stop != 200)) continue;
      const std::string name = "stopped-" + std::to_string(stop) + "-" + std::to_string(keep);
      const auto ask = [&](int64_t update, ParameterStore&) {
        if (update == stop) request_stop(SIGTERM);
      };
      EXPECT_EQ(train_with_rises(name, {200}, ask), RunOutcome::interrupted);
      request_stop(0);
      EXPECT_EQ(train_with_rises(name, {200}), RunOutcome::finished);
      EXPECT_EQ(state_.rises, 1) << name << "\n" << log_;
      EXPECT_EQ(state_.update, 300);
      for (const int64_t n : checkpoints(name).numbers()) EXPECT_LE(n, 300);
      EXPECT_EQ(std::ssize(checkpoints(name).numbers()), keep);
      EXPECT_EQ(result(name), result(straight)) << name;
    }
  }
}

TEST_F(RisesTest, AreUndoneTheSameWayInAnOftenStoppedRun) {
  train_with_rises("straight", {200});
  EXPECT_EQ(state_.rises, 1) << log_;
  const auto ask = [last = int64_t{0}](int64_t update, ParameterStore&) mutable {
    if (update % 3 == 0 && update > last) last = update, request_stop(SIGTERM);
  };
  while (train_with_rises("stopped", {200}, ask) == RunOutcome::interrupted) {
    request_stop(0);
    EXPECT_LE(std::ssize(checkpoints("stopped").numbers()), options_.checkpoint.keep + 1);
  }
  EXPECT_EQ(result("stopped"), result("straight"));
}

TEST_F(RisesTest, LeaveNoSnapshotsOfUndoneUpdates) {
  options_.valid.every = options_.valid.apart = 0;  // without rollbacks epochs end at other updates
  options_.train.average = 100;
  options_.checkpoint.every = 0;
  train("clean");
  std::vector<int64_t> ends;
  for (const MetricsLine& line : read_metrics(directory("clean") + "/metrics.jsonl"))
    if (line.kind == "valid" && line.update > 150) ends.push_back(line.update);
  ASSERT_FALSE(ends.empty());
  const int64_t end = ends.front();
  options_.train.updates = end + 6;
  bool there = false;
  const auto see = [&](int64_t update, ParameterStore&) {
    if (update == end + 1) there = fs::exists(snapshots("rise").path(end));
  };
  train_with_rises("rise", {end - 1}, see);
  EXPECT_EQ(state_.rises, 1) << log_;
  EXPECT_TRUE(there);
  std::vector<int64_t> validated;
  for (const MetricsLine& line : read_metrics(directory("rise") + "/metrics.jsonl"))
    if (line.kind == "valid") validated.push_back(line.update);
  EXPECT_EQ(std::ranges::count(validated, end), 0);
  EXPECT_EQ(snapshots("rise").numbers(), validated);
}

TEST_F(RisesTest, AreAcceptedIfCheckpointsAreDamaged) {
  const auto damage = [&](int64_t update, ParameterStore&) {
    if (update != 203) return;
    for (const int64_t n : checkpoints("a").numbers())
      write_atomically(checkpoints("a").path(n), "");
  };
  EXPECT_EQ(train_with_rises("a", {200}, damage), RunOutcome::finished);
  EXPECT_EQ(state_.rises, 0);
  EXPECT_EQ(state_.update, 300);
  EXPECT_TRUE(logged("the checkpoints from before the rise are damaged, training continues"))
      << log_;
}

TEST_F(RisesTest, AreAcceptedIfNoCheckpointIsOldEnough) {
  const auto remove = [&](int64_t update, ParameterStore&) {
    if (update == 203) checkpoints("a").prune(update, 0);
  };
  EXPECT_EQ(train_with_rises("a", {200}, remove), RunOutcome::finished);
  EXPECT_EQ(state_.rises, 0);
  EXPECT_TRUE(logged("there is no checkpoint from before the rise, training continues")) << log_;
}

TEST_F(RisesTest, AreUndoneThreeTimesAndCountedSeparately) {
  options_.checkpoint.every = 4;
  const auto break_weight = [&, done = false](int64_t update, ParameterStore& store) mutable {
    if (done || update < 310) return;
    done = true;
    store.values().data<float>()[5] = std::numeric_limits<float>::infinity();
  };
  EXPECT_EQ(train_with_rises("a", {200, 225, 250, 275}, break_weight), RunOutcome::finished);
  EXPECT_EQ(state_.rises, 3) << log_;
  EXPECT_EQ(state_.rollbacks, 1) << log_;
  EXPECT_EQ(state_.rate_factor, 1.0 / 16);
  EXPECT_TRUE(logged("3 rollbacks have not helped, training continues")) << log_;
}

TEST_F(RisesTest, PostponeDueSaves) {
  std::vector<float> usual;
  const auto spoil = [&](int64_t update, ParameterStore& store) {  // from update 199 to 201
    float* values = store.values().data<float>();
    if (update == 199) {
      usual.assign(values, values + store.size());
      for (int64_t i = 0; i < store.size(); ++i) values[i] = i % 2 ? 30.0f : -30.0f;
    } else if (update == 201) {
      std::ranges::copy(usual, values);
    }
  };
  train_with_rises("a", {}, spoil);
  EXPECT_EQ(state_.rises, 0) << log_;
  EXPECT_TRUE(logged("saved update 180\n")) << log_;
  EXPECT_FALSE(logged("saved update 200\n")) << log_;
  EXPECT_FALSE(logged("saved update 201\n")) << log_;
  EXPECT_TRUE(logged("saved update 202\n")) << log_;
  EXPECT_FALSE(logged("saved update 203\n")) << log_;
  EXPECT_TRUE(logged("saved update 220\n")) << log_;
}

}  // namespace
}  // namespace fovea
