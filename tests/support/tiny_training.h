#pragma once

#include <gtest/gtest.h>
#include <omp.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.h"
#include "base/signals.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "tensor/tape.h"
#include "train/trainer.h"

// A training that is small enough for dozens of runs in a test.
namespace fovea {

namespace fs = std::filesystem;
inline constexpr int32_t kWords = 12;

// The smallest trainable model: it predicts the next word from the last one, with dropout.
class Bigrams : public Model {
 public:
  explicit Bigrams(uint64_t seed)
      : Model(ElementType::f32, Cpu{}, {.max_length = 100, .target_words = kWords}) {
    first_ = store_.declare("first", {kWords, kWords}, ParameterInit::normal(0.1));
    rest_ = store_.declare("rest", {3}, ParameterInit::constant(0));
    store_.allocate(seed);
    store_.allocate_gradients();
  }
  BatchLoss loss(const TrainingBatch& batch, double label_smoothing) const override {
    const std::span<const int32_t> words = batch.target_in.ids;
    check(std::ssize(words) <= (Tape::live() ? most : most_read), ExitCode::memory,
          "out of memory");
    check(!Tape::live() || in_pieces-- <= 0, ExitCode::memory, "out of memory");
    precisions.insert(PrecisionScope::current());
    const Tensor logits = embed(
        first_, {},
        {.ids = Tensor::of(words), .places = {}, .scale = 1, .dropout = dropout_key(dropout)});
    const CrossEntropy result =
        cross_entropy(logits, Tensor::of(batch.target_out), label_smoothing);
    return {result.loss, result.log_likelihood};
  }

  int64_t most = 1000, most_read = 1000;  // limits of the words of a batch: with a tape, without
  mutable int64_t in_pieces = 0;          // number of failures because of fragmented memory
  double dropout = 0.2;
  mutable std::set<Precision> precisions;  // the precisions of its computations

 private:
  Tensor first_, rest_;
};

inline Corpus random_text(int64_t sentences, uint64_t seed) {
  Random random(seed);
  Corpus corpus;
  for (int64_t i = 0; i < sentences; ++i) {
    std::vector<int32_t> words(1 + random.below(6));
    int32_t last = 0;
    for (int32_t& w : words)  // most words are the successor of the last one
      last = w =
          kSpecials + static_cast<int32_t>(random.below(4) ? (last + 1) % 8 : random.below(8));
    corpus.add(words, words, i + 1);
  }
  return corpus;
}

struct ProcessKilled {};  // simulates kill -9: nothing is saved

class TrainerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    omp_set_num_threads(1);  // a second thread would not help here
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
    options_.complete(ExitCode::usage);
  }
  void TearDown() override {
    request_stop(0);
    fs::remove_all(root_);
  }

  std::string directory(const std::string& name) const { return (root_ / name).string(); }

  using Disturb = std::function<void(int64_t, ParameterStore&)>;
  RunOutcome train(const std::string& name, const Disturb& disturb = nullptr,
                   const RunIdentity& identity = {{"data", "1"}}) {
    fs::create_directories(root_ / name);
    Bigrams model(seed_++);  // a resumed run must not depend on the initial weights
    model.most = most_;
    model.most_read = most_read_;
    model.in_pieces = in_pieces_;
    model.dropout = dropout_;
    if (!fs::exists(root_ / name / "checkpoints/checkpoint-00000000.safetensors"))
      if (fs::is_empty(root_ / name))
        model.parameters().values().copy_from(Bigrams(1).parameters().values());
    const std::string path = directory(name) + "/model.safetensors";
    Observers observers;
    observers.push_back(metrics_observer(directory(name)));
    observers.push_back(tensorboard_observer(directory(name)));
    Trainer trainer({.options = options_,
                     .weights = model,
                     .text = text_,
                     .valid = valid_,
                     .test = none_,
                     .directory = directory(name),
                     .identity = identity,
                     .resume = resume_,
                     .translate = translate_,
                     .write_model = [&] { write_weights(path, model.parameters()); },
                     .read_model = [] {},
                     .disturb = disturb},
                    std::move(observers));
    const RunOutcome outcome = trainer.run();
    state_ = trainer.state();
    precisions_ = model.precisions;
    return outcome;
  }

  FileSeries checkpoints(const std::string& name) const {
    return {directory(name) + "/checkpoints", "checkpoint"};
  }

  FileSeries snapshots(const std::string& name) const {
    return {directory(name) + "/snapshots", "snapshot"};
  }

  // The results that must be equal for two runs of the same task.
  std::string result(const std::string& name) const {
    const std::string at = directory(name);
    std::string text = read_file(checkpoints(name).path(options_.train.updates));
    text += read_file(at + "/model.safetensors");
    for (const int64_t n : snapshots(name).numbers()) text += std::to_string(n);
    for (const MetricsLine& line : read_metrics(at + "/metrics.jsonl"))
      text += std::string(without_wall(metrics_line(line))) + "\n";
    return text;
  }

  fs::path root_;
  TrainOptions options_;
  Corpus text_ = random_text(200, 1);
  HeldOut valid_, none_;
  TrainState state_;
  ResumeMode resume_ = ResumeMode::exact;
  uint64_t seed_ = 100;
  int64_t most_ = 1000, most_read_ = 1000, in_pieces_ = 0;
  double dropout_ = 0.2;
  TranslateLines translate_ = [](const Model&, const Lines& lines, int64_t) { return lines; };
  std::set<Precision> precisions_;  // of the last training
};

}  // namespace fovea
