#include "train/trainer.h"

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <limits>

#include "base/random.h"
#include "base/signals.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "temporary.h"
#include "tensor/tape.h"
#include "train/parts.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
constexpr int32_t kWords = 12;

// The next word by the last one alone, with dropout: the smallest thing that can be trained.
class Bigrams : public Model {
 public:
  explicit Bigrams(uint64_t seed) : Model(Type::f32, Cpu{}) {
    first_ = store_.declare("first", {kWords, kWords}, Init::normal(0.1));
    rest_ = store_.declare("rest", {3}, Init::constant(0));
    store_.allocate(seed);
    store_.allocate_gradients();
  }
  int64_t target_words() const override { return kWords; }
  int64_t max_length() const override { return 100; }
  BatchLoss loss(const Tokens&, const Tokens& target_in, std::span<const int32_t> target_out,
                 double label_smoothing) const override {
    check(!Tape::live() || std::ssize(target_in.ids) <= most, Exit::memory, "out of memory");
    const Tensor logits = embed(
        first_, {},
        {.ids = Tensor::of(target_in.ids), .places = {}, .scale = 1, .dropout = dropout_key(0.2)});
    const CrossEntropy result = cross_entropy(logits, Tensor::of(target_out), label_smoothing);
    return {result.loss, result.log_likelihood};
  }
  std::unique_ptr<DecoderState> start(const Tokens&) const override { return nullptr; }
  Tensor step(DecoderState&, std::span<const int32_t>) const override { return {}; }
  void reorder(DecoderState&, std::span<const int32_t>) const override {}
  std::vector<std::vector<AttentionMap>> attention(const Tokens&, const Tokens&) const override {
    return {};
  }

  int64_t most = 1000;  // words of a batch that there is memory for

 private:
  Tensor first_, rest_;
};

Corpus random_text(int64_t sentences, uint64_t seed) {
  Random random(seed);
  Corpus corpus;
  for (int64_t i = 0; i < sentences; ++i) {
    std::vector<int32_t> words(1 + random.below(6));
    int32_t last = 0;
    for (int32_t& w : words)  // mostly the successor of the last word: something to learn
      last = w =
          kSpecials + static_cast<int32_t>(random.below(4) ? (last + 1) % 8 : random.below(8));
    corpus.add(words, words, i + 1);
  }
  return corpus;
}

struct Killed {};  // stands for kill -9: nothing is saved on the way out

class TrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    omp_set_num_threads(1);  // nothing here is worth a second thread
    root_ = fs::temp_directory_path() / ("fovea-trainer-" + std::to_string(getpid()));
    fs::remove_all(root_);
    valid_.corpus = random_text(10, 2);
    options_.data.train_source = options_.data.train_target = {"x"};
    options_.batch.tokens = 40;
    options_.optimizer = {.clip = 1, .ema = 0.9};
    options_.schedule = {.lr = 0.05, .warmup = 10};
    options_.train = {.updates = 60, .accumulate = 2, .average = 3, .log_every = 7, .seed = 5};
    options_.valid = {.every = 9, .patience = 0};
    options_.checkpoint = {.every = 4, .keep = 3};
    options_.complete(Exit::usage);
  }
  void TearDown() override {
    request_stop(0);
    fs::remove_all(root_);
  }

  std::string directory(const std::string& name) const { return (root_ / name).string(); }

  using Disturb = std::function<void(int64_t, ParameterStore&)>;
  Outcome train(const std::string& name, const Disturb& disturb = nullptr,
                const Identity& identity = {{"data", "1"}}) {
    fs::create_directories(root_ / name);
    Bigrams model(seed_++);  // a resumed run must not hang on what the model began with
    model.most = most_;
    if (!fs::exists(root_ / name / "checkpoints/checkpoint-00000000.safetensors"))
      if (fs::is_empty(root_ / name))
        model.parameters().values().copy_from(Bigrams(1).parameters().values());
    const std::string path = directory(name) + "/model.safetensors";
    Observers observers;
    observers.push_back(metrics_observer(directory(name)));
    observers.push_back(tensorboard_observer(directory(name)));
    Trainer trainer({.options = options_,
                     .model = model,
                     .text = text_,
                     .valid = valid_,
                     .test = none_,
                     .directory = directory(name),
                     .identity = identity,
                     .translate = [](const Model&, const Lines& lines) { return lines; },
                     .write_model = [&] { write_weights(path, model.parameters()); },
                     .read_model = [] {},
                     .disturb = disturb},
                    std::move(observers));
    const Outcome outcome = trainer.run();
    state_ = trainer.state();
    return outcome;
  }

  FileSeries checkpoints(const std::string& name) const {
    return {directory(name) + "/checkpoints", "checkpoint"};
  }

  // All that must be the same bytes in two runs that had the same task.
  std::string result(const std::string& name) const {
    const std::string at = directory(name);
    std::string text = read_file(checkpoints(name).path(options_.train.updates));
    text += read_file(at + "/model.safetensors");
    for (const int64_t n : FileSeries(at + "/snapshots", "snapshot").numbers())
      text += std::to_string(n);
    for (const Metrics& line : read_metrics(at + "/metrics.jsonl"))
      text += std::string(without_wall(metrics_line(line))) + "\n";
    return text;
  }

  fs::path root_;
  TrainOptions options_;
  Corpus text_ = random_text(200, 1);
  HeldOut valid_, none_;
  TrainState state_;
  uint64_t seed_ = 100;
  int64_t most_ = 1000;
};

TEST_F(TrainerTest, LearnsAndWritesWhatItShould) {
  EXPECT_EQ(train("a"), Outcome::finished);
  EXPECT_EQ(state_.update, 60);
  EXPECT_TRUE(state_.finished);
  const std::vector<Metrics> log = read_metrics(directory("a") + "/metrics.jsonl");
  ASSERT_GT(log.size(), 10u);
  EXPECT_EQ(log.back().kind, "average");
  EXPECT_LT(*log.back().value("ppl"), 6);
  EXPECT_GT(*log.front().value("ppl"), 8);
  EXPECT_EQ(checkpoints("a").numbers(), (std::vector<int64_t>{54, 56, 60}));
  EXPECT_EQ(train("a"), Outcome::finished);  // nothing is left to do, nothing changes
  EXPECT_EQ(read_metrics(directory("a") + "/metrics.jsonl").size(), log.size());
}

TEST_F(TrainerTest, StoppedAnywhereItEndsWithTheSameBits) {
  train("straight");
  const std::string wanted = result("straight");
  for (int64_t at : {1, 2, 7, 16, 17, 18, 27, 54, 55, 107, 108, 119, 120}) {
    const std::string name = "stopped-" + std::to_string(at);
    const auto stop = [&](int64_t drawn, ParameterStore&) {
      if (drawn >= 2 * at && drawn < 2 * at + 2) request_stop(SIGTERM);
    };
    if (at < 60) {
      EXPECT_EQ(train(name, stop), Outcome::interrupted) << at;
      EXPECT_EQ(state_.update, at);
      request_stop(0);
    }
    EXPECT_EQ(train(name), Outcome::finished);
    EXPECT_EQ(result(name), wanted) << "stopped at update " << at;
  }
}

TEST_F(TrainerTest, KilledAgainAndAgainItEndsWithTheSameBits) {
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
                 if (--left == 0) throw Killed();
               }) == Outcome::finished;
      } catch (const Killed&) {
        ++kills;
      }
    }
    EXPECT_EQ(result(name), wanted);
  }
  EXPECT_GE(kills, 20);
}

TEST_F(TrainerTest, DamagedCheckpointsArePassedOver) {
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
                         if (drawn >= 60) throw Killed();
                       }),
                 Killed);
    const std::string newest = checkpoints(name).path(checkpoints(name).numbers().back());
    std::string bytes = read_file(newest);
    damages[kind](bytes);
    write_atomically(newest, bytes);
    testing::internal::CaptureStderr();
    EXPECT_EQ(train(name), Outcome::finished);
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_NE(log.find("skipped update 28: "), std::string::npos) << log;
    EXPECT_NE(log.find("; resumed from update 27"), std::string::npos) << log;
    EXPECT_EQ(result(name), wanted) << "damage " << kind;
  }
}

TEST_F(TrainerTest, AllCheckpointsDamagedIsAnError) {
  train("a");
  for (const int64_t n : checkpoints("a").numbers()) write_atomically(checkpoints("a").path(n), "");
  try {
    train("a");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::model);
    EXPECT_NE(std::string(error.what()).find("--restart"), std::string::npos);
  }
}

TEST_F(TrainerTest, OtherDataIsRefusedByName) {
  train("a");
  try {
    train("a", nullptr, {{"data", "2"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::data);
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
  const int64_t unused = 5, used = kBos * kWords + 5;  // the row of <pad> takes part in nothing
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
    const std::vector<Metrics> log = read_metrics(directory(name) + "/metrics.jsonl");
    for (size_t i = 1; i < log.size(); ++i) EXPECT_GE(log[i].update, log[i - 1].update);
  }
}

TEST_F(TrainerTest, LastingDivergenceEndsWithTheTensorAndTheLines) {
  try {
    train("bad", [](int64_t drawn, ParameterStore& store) {
      if (drawn > 20)
        store.gradients().data<float>()[kWords * kWords + 1] =
            std::numeric_limits<float>::infinity();
    });
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::diverged);
    const std::string text = error.what();
    EXPECT_NE(text.find("gradient of rest"), std::string::npos) << text;
    EXPECT_NE(text.find("sentences of lines"), std::string::npos) << text;
  }
}

// A learning rate far too large for five updates, as a broken schedule would give.
constexpr double kTooFast = 1000;

TEST_F(TrainerTest, ARiseOfTheLossIsUndone) {
  options_.train.updates = 300;
  options_.valid.every = 100;
  options_.schedule.kind = ScheduleKind::constant;
  const double rate = options_.schedule.lr;
  train("clean");
  EXPECT_EQ(state_.rollbacks, 0);
  const double clean = *read_metrics(directory("clean") + "/metrics.jsonl").back().value("ppl");
  for (const int64_t every : {1, 4, 50}) {
    options_.checkpoint.every = every;
    const std::string name = "rise-" + std::to_string(every);
    testing::internal::CaptureStderr();
    train(name, [&](int64_t drawn, ParameterStore&) {
      const int64_t update = drawn / options_.train.accumulate;
      options_.schedule.lr = update >= 200 && update < 205 ? kTooFast * rate : rate;
    });
    const std::string log = testing::internal::GetCapturedStderr();
    EXPECT_EQ(state_.rollbacks, 1) << log;
    EXPECT_EQ(state_.update, 300);
    const size_t at = log.find(" skipped: loss ");
    ASSERT_NE(at, std::string::npos) << log;
    const int64_t found = std::stoll(log.substr(log.rfind(' ', at - 1) + 1));
    EXPECT_LE(found, 220);
    const size_t back = log.find(": back to update ");
    ASSERT_NE(back, std::string::npos) << log;
    EXPECT_LE(std::stoll(log.substr(back + 17)), 199);
    const auto last = read_metrics(directory(name) + "/metrics.jsonl").back();
    EXPECT_LT(*last.value("ppl"), 1.05 * clean);
  }
}

TEST_F(TrainerTest, ARiseIsUndoneInAResumedRunToo) {
  options_.train.updates = 300;
  options_.valid.every = 100;
  options_.checkpoint.every = 20;
  options_.schedule.kind = ScheduleKind::constant;
  const double rate = options_.schedule.lr;
  const auto run = [&](const std::string& name, int64_t stop) {
    return train(name, [&, stop](int64_t drawn, ParameterStore&) {
      const int64_t update = drawn / options_.train.accumulate;
      options_.schedule.lr = update >= 200 && update < 205 ? kTooFast * rate : rate;
      if (update == stop) request_stop(SIGTERM);
    });
  };
  run("straight", 0);
  for (const int64_t stop : {199, 200, 202, 204}) {
    const std::string name = "stopped-" + std::to_string(stop);
    EXPECT_EQ(run(name, stop), Outcome::interrupted);
    request_stop(0);
    EXPECT_EQ(run(name, 0), Outcome::finished);
    EXPECT_EQ(state_.rollbacks, 1);
    EXPECT_EQ(state_.update, 300);
    for (const int64_t n : checkpoints(name).numbers()) EXPECT_LE(n, 300);
  }
}

TEST_F(TrainerTest, TooLittleMemoryMeansSmallerParts) {
  train("straight");
  most_ = 25;
  testing::internal::CaptureStderr();
  EXPECT_EQ(train("small"), Outcome::finished);
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("batch of 40 tokens: out of memory; continuing with 20"), std::string::npos)
      << log;
  EXPECT_EQ(state_.parts, 2);
  EXPECT_EQ(state_.update, 60);
  const auto last = [&](const std::string& name) {
    return *read_metrics(directory(name) + "/metrics.jsonl").back().value("ppl");
  };
  EXPECT_NEAR(last("small"), last("straight"), 0.3);  // only dropout differs
  const std::string wanted = result("small");
  for (const int64_t at : {1, 2, 40}) {
    const std::string name = "stopped-" + std::to_string(at);
    train(name, [&](int64_t drawn, ParameterStore&) {
      if (drawn >= 2 * at && drawn < 2 * at + 2) request_stop(SIGTERM);
    });
    request_stop(0);
    EXPECT_EQ(train(name), Outcome::finished);
    EXPECT_EQ(result(name), wanted) << at;
  }
}

TEST_F(TrainerTest, TooLittleMemoryForOnePairEndsTheRun) {
  train("a", [](int64_t drawn, ParameterStore&) {
    if (drawn >= 60) request_stop(SIGTERM);
  });
  request_stop(0);
  most_ = 3;
  message_of(Exit::memory, [&] { train("a"); });
  most_ = 1000;
  EXPECT_EQ(train("a"), Outcome::finished);  // nothing was lost
  EXPECT_EQ(state_.parts, 1);
}

TEST(Parts, HoldEveryPairOnceAndInOrder) {
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
  options_.schedule.lr = 0.5;  // soon overfits
  train("a");
  EXPECT_EQ(state_.since_best, 3);
  EXPECT_LT(state_.update, 5000);
  EXPECT_EQ(state_.update, state_.best_update + 6);
}

TEST_F(TrainerTest, FailedSavesDoNotStopTrainingAtOnce) {
  int64_t blocked = 0;
  const std::string at = directory("a") + "/checkpoints";
  const auto block = [&](int64_t drawn, ParameterStore&) {
    if (drawn != 20) return;
    fs::create_directory(at + "/checkpoint-00000012.safetensors");  // rename onto it fails
    ++blocked;
  };
  EXPECT_EQ(train("a", block), Outcome::finished);
  EXPECT_EQ(blocked, 1);
  fs::remove(at + "/checkpoint-00000012.safetensors");
}

}  // namespace
}  // namespace fovea
