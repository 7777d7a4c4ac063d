#include "train/trainer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "support/tiny_training.h"
#include "temporary.h"
#include "train/split_batch.h"

namespace fovea {
namespace {

TEST_F(TrainerTest, LearnsAndWritesItsFiles) {
  EXPECT_EQ(train("a"), RunOutcome::finished);
  EXPECT_EQ(state_.update, 60);
  EXPECT_TRUE(state_.finished);
  const std::vector<MetricsLine> log = read_metrics(directory("a") + "/metrics.jsonl");
  ASSERT_GT(log.size(), 10u);
  EXPECT_EQ(log.back().kind, "average");
  EXPECT_LT(*log.back().value("ppl"), 6);
  EXPECT_GT(*log.front().value("ppl"), 8);
  EXPECT_EQ(checkpoints("a").numbers(), (std::vector<int64_t>{54, 56, 60}));
  EXPECT_EQ(train("a"), RunOutcome::finished);  // the run has ended, so nothing changes
  EXPECT_EQ(read_metrics(directory("a") + "/metrics.jsonl").size(), log.size());
}

TEST_F(TrainerTest, AStoppedRunEndsWithTheSameBits) {
  train("straight");
  const std::string wanted = result("straight");
  for (int64_t at : {1, 2, 7, 16, 17, 18, 27, 54, 55, 107, 108, 119, 120}) {
    const std::string name = "stopped-" + std::to_string(at);
    const auto stop = [&](int64_t drawn, ParameterStore&) {
      if (drawn >= 2 * at && drawn < 2 * at + 2) request_stop(SIGTERM);
    };
    if (at < 60) {
      EXPECT_EQ(train(name, stop), RunOutcome::interrupted) << at;
      EXPECT_EQ(state_.update, at);
      request_stop(0);
    }
    EXPECT_EQ(train(name), RunOutcome::finished);
    EXPECT_EQ(result(name), wanted) << "stopped at update " << at;
  }
}

TEST_F(TrainerTest, AnOftenKilledRunEndsWithTheSameBits) {
  train("straight");
  const std::string wanted = result("straight");
  Random random(3);
  int64_t kills = 0;
  for (int run = 0; run < 6; ++run) {
    const std::string name = "killed-" + std::to_string(run);
    for (bool done = false; !done;) {
      const int64_t steps = static_cast<int64_t>(1 + random.below(25));
      int64_t left = steps;
      try {
        done = train(name, [&](int64_t, ParameterStore&) {
                 if (--left == 0) throw ProcessKilled();
               }) == RunOutcome::finished;
      } catch (const ProcessKilled&) {
        ++kills;
      }
    }
    EXPECT_EQ(result(name), wanted);
  }
  EXPECT_GE(kills, 20);
}

TEST_F(TrainerTest, SkipsDamagedCheckpoints) {
  train("straight");
  const std::string wanted = result("straight");
  const auto truncate = [](std::string& bytes) { bytes.resize(bytes.size() / 2); };
  const std::vector<std::function<void(std::string&)>> damages = {
      truncate,
      [](std::string& b) { b.clear(); },
      [](std::string& b) { b.resize(7); },
      [](std::string& b) { b.pop_back(); },
      [](std::string& b) { b += 'x'; },
      [](std::string& b) { b.back() = static_cast<char>(b.back() ^ 1); },
      [](std::string& b) { b[b.size() / 2] = static_cast<char>(b[b.size() / 2] ^ 64); },
      [](std::string& b) { b[0] = static_cast<char>(b[0] ^ 1); },
      [](std::string& b) { b[40] = static_cast<char>(b[40] ^ 4); },
      [](std::string& b) { b.assign(b.size(), '\0'); },
      [](std::string& b) { b.replace(b.find("rate_factor"), 4, "tare"); },
  };
  for (size_t kind = 0; kind < damages.size(); ++kind) {
    const std::string name = "damaged-" + std::to_string(kind);
    EXPECT_THROW(train(name,
                       [](int64_t drawn, ParameterStore&) {
                         if (drawn >= 60) throw ProcessKilled();
                       }),
                 ProcessKilled);
    const std::string newest = checkpoints(name).path(checkpoints(name).numbers().back());
    std::string bytes = read_file(newest);
    damages[kind](bytes);
    write_atomically(newest, bytes);
    testing::internal::CaptureStderr();
    EXPECT_EQ(train(name), RunOutcome::finished);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("skipped update 28: "), std::string::npos) << log;
    EXPECT_NE(log.find("; resumed from update 27"), std::string::npos) << log;
    EXPECT_EQ(result(name), wanted) << "damage " << kind;
  }
}

TEST_F(TrainerTest, UnusableCheckpointsDoNotReplaceGoodOnes) {
  options_.checkpoint.every = 5;
  options_.checkpoint.keep = 1;
  const auto stop_at = [](int64_t update) {
    return [update](int64_t drawn, ParameterStore&) {
      if (drawn == 2 * update) request_stop(SIGTERM);
    };
  };
  train("a", stop_at(12));
  request_stop(0);
  EXPECT_EQ(checkpoints("a").numbers(), (std::vector<int64_t>{9, 10, 12}));
  // If a program is killed before it removes a requested checkpoint, there are two of them.
  fs::copy_file(checkpoints("a").path(12), checkpoints("a").path(7));
  write_atomically(checkpoints("a").path(12), "damaged");
  train("a", stop_at(16));
  EXPECT_EQ(checkpoints("a").numbers(), (std::vector<int64_t>{10, 15, 16}));
}

TEST_F(TrainerTest, ARunStoppedAmongSkippedUpdatesEndsWithTheSameBits) {
  options_.checkpoint.every = 10;
  const auto bad = [](int64_t drawn, ParameterStore& store) {  // 13 updates
    if (drawn > 60 && drawn <= 86)
      store.gradients().data<float>()[3] = std::numeric_limits<float>::infinity();
  };
  train("straight", bad);
  EXPECT_EQ(state_.rollbacks, 1);
  EXPECT_EQ(state_.skipped, 13);
  for (const int64_t at : {62, 70, 78, 82}) {
    const std::string name = "stopped-" + std::to_string(at);
    train(name, [&](int64_t drawn, ParameterStore& store) {
      bad(drawn, store);
      if (drawn == at) request_stop(SIGTERM);
    });
    request_stop(0);
    EXPECT_EQ(train(name, bad), RunOutcome::finished);
    EXPECT_EQ(result(name), result("straight")) << at;
  }
}

TEST_F(TrainerTest, AllCheckpointsDamagedIsAnError) {
  train("a");
  for (const int64_t n : checkpoints("a").numbers()) write_atomically(checkpoints("a").path(n), "");
  try {
    train("a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::model);
    EXPECT_NE(std::string(error.what()).find("`restart`"), std::string::npos);
  }
}

TEST_F(TrainerTest, RefusesOtherDataByName) {
  train("a");
  try {
    train("a", nullptr, {{"data", "2"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::data);
    EXPECT_NE(std::string(error.what()).find("data was 1, now it is 2"), std::string::npos);
  }
}

TEST_F(TrainerTest, UpdatesThatAreNotFiniteAreSkipped) {
  train("bad", [](int64_t drawn, ParameterStore& store) {
    if (drawn == 20 || drawn == 40)
      store.gradients().data<float>()[3] = std::numeric_limits<float>::quiet_NaN();
  });
  EXPECT_EQ(state_.skipped, 2);
  EXPECT_EQ(state_.rollbacks, 0);
  EXPECT_EQ(state_.update, 60);
  Bigrams model(1);
  Optimizer optimizer(model.parameters(), {.ema = 0.9});
  for (const int64_t n : checkpoints("bad").numbers()) {
    read_checkpoint(checkpoints("bad").path(n), {{"data", "1"}}, model.parameters(), optimizer);
    EXPECT_EQ(first_not_finite(model.parameters(), model.parameters().values()), nullptr);
  }
}

TEST_F(TrainerTest, ABrokenWeightRollsBack) {
  const int64_t unused = 5, used = kBos * kWords + 5;  // the row of <pad> has no effect
  for (const int64_t at : {unused, used}) {
    const std::string name = "bad-" + std::to_string(at);
    train(name, [at, done = false](int64_t drawn, ParameterStore& store) mutable {
      if (done || drawn < 60) return;
      done = true;
      store.values().data<float>()[at] = std::numeric_limits<float>::infinity();
    });
    EXPECT_EQ(state_.rollbacks, 1);
    EXPECT_EQ(state_.rate_factor, 0.5);
    EXPECT_EQ(state_.update, 60);
    EXPECT_EQ(state_.skipped, at == used ? 10 : 1);
    const std::vector<MetricsLine> log = read_metrics(directory(name) + "/metrics.jsonl");
    for (size_t i = 1; i < log.size(); ++i) EXPECT_GE(log[i].update, log[i - 1].update);
  }
}

TEST_F(TrainerTest, LastingDivergenceIsAnErrorWithTensorAndLines) {
  try {
    train("bad", [](int64_t drawn, ParameterStore& store) {
      if (drawn > 20)
        store.gradients().data<float>()[kWords * kWords + 1] =
            std::numeric_limits<float>::infinity();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    const std::string text = error.what();
    EXPECT_NE(text.find("gradient of rest"), std::string::npos) << text;
    EXPECT_NE(text.find("sentences of lines"), std::string::npos) << text;
  }
}

TEST_F(TrainerTest, ResumesWithAnInfinitePerplexity) {
  options_.schedule.lr = 1e6;  // makes the perplexity infinite
  options_.train.average = 0;
  train("straight");
  train("stopped", [](int64_t drawn, ParameterStore&) {
    if (drawn >= 60) request_stop(SIGTERM);
  });
  EXPECT_EQ(state_.best, std::numeric_limits<double>::infinity());
  request_stop(0);
  testing::internal::CaptureStderr();
  EXPECT_EQ(train("stopped"), RunOutcome::finished);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("] resumed from update 30"), std::string::npos) << log;
  EXPECT_EQ(result("stopped"), result("straight"));
}

TEST_F(TrainerTest, TooLittleMemoryGivesSmallerParts) {
  train("straight");
  most_ = 25;
  testing::internal::CaptureStderr();
  EXPECT_EQ(train("small"), RunOutcome::finished);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("batch of 40 tokens: out of memory; continuing with parts of 20"),
            std::string::npos)
      << log;
  EXPECT_EQ(state_.parts, 2);
  EXPECT_EQ(state_.update, 60);
  const auto last = [&](const std::string& name) {
    return *read_metrics(directory(name) + "/metrics.jsonl").back().value("ppl");
  };
  EXPECT_NEAR(last("small"), last("straight"), 0.3);  // they differ only in dropout
  const std::string wanted = result("small");
  for (const int64_t at : {1, 2, 40}) {
    const std::string name = "stopped-" + std::to_string(at);
    train(name, [&](int64_t drawn, ParameterStore&) {
      if (drawn >= 2 * at && drawn < 2 * at + 2) request_stop(SIGTERM);
    });
    request_stop(0);
    EXPECT_EQ(train(name), RunOutcome::finished);
    EXPECT_EQ(result(name), wanted) << at;
  }
}

TEST_F(TrainerTest, ReleasesFragmentedMemoryBeforeItSplitsBatches) {
  train("straight");
  in_pieces_ = 1;
  EXPECT_EQ(train("in pieces"), RunOutcome::finished);
  EXPECT_EQ(state_.parts, 1);
  EXPECT_EQ(result("in pieces"), result("straight"));
  in_pieces_ = 2;  // fails also after the release
  train("cut");
  EXPECT_EQ(state_.parts, 2);
}

TEST_F(TrainerTest, TooLittleMemoryForOnePairEndsTheRun) {
  train("a", [](int64_t drawn, ParameterStore&) {
    if (drawn >= 60) request_stop(SIGTERM);
  });
  request_stop(0);
  most_ = 3;
  message_of(ExitCode::memory, [&] { train("a"); });
  most_ = 1000;
  EXPECT_EQ(train("a"), RunOutcome::finished);  // no update was lost
  EXPECT_EQ(state_.parts, 1);
}

TEST_F(TrainerTest, TooLittleMemoryToValidateGivesSmallerBatches) {
  train("straight");
  most_read_ = 25;
  testing::internal::CaptureStderr();
  EXPECT_EQ(train("small"), RunOutcome::finished);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("validation with batches of 40 tokens: out of memory; trying half that size"),
            std::string::npos)
      << log;
  EXPECT_EQ(state_.parts, 1);  // there was enough memory for updates
  const auto last = [&](const std::string& name) {
    return *read_metrics(directory(name) + "/metrics.jsonl").back().value("ppl");
  };
  EXPECT_NEAR(last("small"), last("straight"), 1e-4);
}

TEST_F(TrainerTest, TooLittleMemoryToTranslateGivesSmallerBatches) {
  valid_.sources = valid_.references = {"a b c d e f"};
  options_.valid.metrics = {"bleu"};
  std::vector<int64_t> asked;
  translate_ = [&](const Model&, const Lines& lines, int64_t most) {
    asked.push_back(most);
    check(most <= 25, ExitCode::memory, "out of memory");
    return lines;
  };
  EXPECT_EQ(train("a"), RunOutcome::finished);
  ASSERT_GT(asked.size(), 3u);
  EXPECT_EQ(asked[0], 40);
  for (size_t i = 1; i < asked.size(); ++i) EXPECT_EQ(asked[i], 20);  // keeps the size that fits
}

TEST_F(TrainerTest, TooLittleMemoryToValidateLosesNoUpdate) {
  options_.checkpoint.every = 0;
  most_read_ = 1;
  message_of(ExitCode::memory, [&] { train("a"); });
  EXPECT_EQ(checkpoints("a").numbers().back(), options_.valid.every);
}

TEST(Parts, HaveEveryPairOnceInOrder) {
  const Corpus text = random_text(50, 3);
  const BatchPlan plan(text, {.tokens = 60}, 0);
  for (int64_t i = 0; i < plan.size(); ++i) {
    const PairBatch whole = plan.batch(i);
    for (const int64_t tokens : {1, 15, 30, 1000}) {
      std::vector<int64_t> members;
      std::vector<int32_t> words;
      for (const PairBatch& part : parts_of(whole, text, tokens)) {
        EXPECT_TRUE(part.source.tokens() <= tokens || part.source.sentences() == 1);
        members.insert(members.end(), part.members.begin(), part.members.end());
        words.insert(words.end(), part.target_out.ids.begin(), part.target_out.ids.end());
      }
      EXPECT_EQ(members, whole.members);
      EXPECT_EQ(words, whole.target_out.ids);
    }
  }
}

TEST_F(TrainerTest, EarlyStoppingCountsValidations) {
  options_.valid = {.every = 2, .patience = 3};
  options_.train.updates = 5000;
  options_.schedule.lr = 0.5;  // overfits soon
  train("a");
  EXPECT_EQ(state_.since_best, 3);
  EXPECT_LT(state_.update, 5000);
  EXPECT_EQ(state_.update, state_.best_update + 6);
}

TEST_F(TrainerTest, NotEveryShortEpochIsValidated) {
  options_.valid = {.every = 0, .patience = 0};
  options_.checkpoint.every = 0;
  options_.train.updates = 250;
  options_.train.average = 0;
  const auto validated = [&](const std::string& name) {
    train(name);
    std::vector<int64_t> updates;
    for (const MetricsLine& line : read_metrics(directory(name) + "/metrics.jsonl"))
      if (line.kind == "valid") updates.push_back(line.update);
    return updates;
  };
  const std::vector<int64_t> few = validated("few");
  ASSERT_EQ(few.size(), 3u);  // the ends of two epochs and of the run
  EXPECT_GE(few[0], 100);
  EXPECT_GE(few[1], few[0] + 100);
  EXPECT_EQ(few[2], 250);
  options_.valid.apart = 0;
  EXPECT_GT(validated("all").size(), 10u);
}

// If a higher value is better, the trainer keeps the highest one, and values that are not higher
// end the run.
TEST_F(TrainerTest, EarlyStoppingKeepsTheBestModel) {
  const std::vector<std::string> lines{"a b x d e f", "a b c d e f", "a b c d e x", "a b c d e f"};
  valid_.sources = valid_.references = {"a b c d e f"};
  size_t asked = 0;
  translate_ = [&](const Model&, const Lines&, int64_t) {
    return Lines{lines[std::min(asked++, lines.size() - 1)]};
  };
  options_.valid = {.every = 2, .metrics = {}, .stop_metric = "bleu", .patience = 3};
  options_.train.updates = 5000;
  options_.train.average = 50;  // keeps up to 50 snapshots
  train("a");
  EXPECT_EQ(state_.best_update, 4);
  EXPECT_EQ(state_.update, 4 + 3 * 2);
  EXPECT_NEAR(state_.best.value_or(0), 100, 1e-9);
  EXPECT_EQ(asked, 6u);  // five validations, and the mean of their weights, which is not better
  EXPECT_EQ(read_file(directory("a") + "/model.safetensors"), read_file(snapshots("a").path(4)));
}

TEST_F(TrainerTest, FailedSavesDoNotStopTrainingAtOnce) {
  int64_t blocked = 0;
  const std::string at = directory("a") + "/checkpoints";
  const auto block = [&](int64_t drawn, ParameterStore&) {
    if (drawn != 20) return;
    fs::create_directory(at + "/checkpoint-00000012.safetensors");  // the rename fails
    ++blocked;
  };
  EXPECT_EQ(train("a", block), RunOutcome::finished);
  EXPECT_EQ(blocked, 1);
  fs::remove(at + "/checkpoint-00000012.safetensors");
}

}  // namespace
}  // namespace fovea
