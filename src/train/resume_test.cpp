#include <gtest/gtest.h>
#include <sys/resource.h>

#include "support/tiny_training.h"
#include "temporary.h"

namespace fovea {
namespace {

class ResumeTest : public TrainerTest {
 protected:
  static Disturb stop_at(int64_t update) {
    return [update](int64_t drawn, ParameterStore&) {
      if (drawn == 2 * update) request_stop(SIGTERM);
    };
  }
};

TEST_F(ResumeTest, ChangesAreAcceptedOnRequestAndNamed) {
  const RunIdentity before{{"data.train (contents)", "a1 2000"}, {"batch.tokens", "40"}},
      now{{"data.train (contents)", "b2 500"}, {"batch.tokens", "30"}};
  train("a", stop_at(25), before);
  request_stop(0);
  const std::string refused = message_of(ExitCode::data, [&] { train("a", nullptr, now); });
  for (const char* part : {"the training text has changed (2,000 → 500 pairs)",
                           "batch.tokens was 40, now it is 30", "`resume_anyway`", "`restart`"})
    EXPECT_NE(refused.find(part), refused.npos) << refused;
  resume_ = ResumeMode::changed;
  options_.batch.tokens = 30;
  testing::internal::CaptureStderr();
  train("a", stop_at(30), now);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("resumed from update 25"), log.npos) << log;
  EXPECT_NE(log.find("`resume_anyway`: the training text has changed"), log.npos) << log;
  request_stop(0);
  resume_ = ResumeMode::exact;  // now the new settings are those of the run
  EXPECT_EQ(train("a", nullptr, now), RunOutcome::finished);
  EXPECT_EQ(state_.update, 60);
}

TEST_F(ResumeTest, AnotherModelIsAlwaysRefused) {
  train("a", stop_at(25), {{"model.heads", "2"}});
  request_stop(0);
  resume_ = ResumeMode::changed;
  const std::string said = message_of(ExitCode::data, [&] {
    train("a", nullptr, {{"model.heads", "4"}});
  });
  EXPECT_NE(said.find("model.heads was 2, now it is 4"), said.npos) << said;
}

TEST_F(ResumeTest, OtherValidationTextResetsTheBestResult) {
  train("a", stop_at(25), {{"data.valid (contents)", "a1 10"}});
  request_stop(0);
  ASSERT_TRUE(state_.best.has_value());
  resume_ = ResumeMode::changed;
  options_.train.updates = 25;
  options_.valid.every = 1000;
  const std::string path = checkpoints("a").path(25);
  Bigrams model(1);
  const Optimizer optimizer(model.parameters(), options_.optimizer);
  const RestoredCheckpoint restored =
      read_checkpoint(path, {{"data.valid (contents)", "b2 10"}}, model.parameters(), optimizer,
                      ResumeMode::changed);
  EXPECT_FALSE(restored.state.best.has_value());
  EXPECT_GT(restored.state.batch, 0) << "the order of batches is the same";
  EXPECT_EQ(restored.changed, "the validation text has changed (still 10 pairs)");
}

// A scope that limits the size of files, like a full disk.
class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) {
    signal_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, signal_);
  }

 private:
  rlimit before_{};
  void (*signal_)(int);
};

TEST_F(ResumeTest, ARunThatCannotSaveItsFirstCheckpointStops) {
  options_.train.average = 0;
  int64_t updates = 0;
  {
    const FileLimit limit(1000);
    message_of(ExitCode::files, [&] { train("a", [&](int64_t, ParameterStore&) { ++updates; }); });
  }
  EXPECT_EQ(updates, 0);
  // If a later save fails, the run continues.
  std::unique_ptr<FileLimit> limit;
  EXPECT_EQ(train("b",
                  [&](int64_t drawn, ParameterStore&) {
                    limit.reset();
                    if (drawn == 8) limit = std::make_unique<FileLimit>(1000);
                  }),
            RunOutcome::finished);
}

// The trainer validates and saves the moving average of the weights.
TEST_F(ResumeTest, TheMovingAverageFollowsTheFirstWeightsFast) {
  options_.train.updates = options_.valid.every = 300;
  options_.train.average = 0;
  const auto perplexity = [&](double decay) {
    options_.optimizer.ema = decay;
    const std::string name = "ema-" + std::to_string(decay);
    train(name);
    return *read_metrics(directory(name) + "/metrics.jsonl").back().value("ppl");
  };
  const double without = perplexity(0), with = perplexity(0.9999);
  EXPECT_LT(with, 1.05 * without);
}

}  // namespace
}  // namespace fovea
