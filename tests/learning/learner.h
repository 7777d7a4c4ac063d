#pragma once

#include <cstdint>
#include <string>

#include "models/model_config.h"
#include "text/batch.h"

// Small models that learn to copy and to reverse random strings.
namespace fovea::learning {

enum class Task { copy, reverse };

// A generator of strings of `letters` different symbols, with lengths from `shortest` to `longest`.
struct Strings {
  Task task = Task::copy;
  int64_t shortest = 5, longest = 20, letters = 20;

  // The n-th batch of a seed, with `count` pairs.
  PairBatch batch(int64_t count, uint64_t seed, int64_t n) const;
};

struct LearningTask {
  ModelConfig model;
  Strings strings = {};
  int64_t updates = 1000, pairs = 64;
  double lr = 0.005;       // falls to 0 along half a cosine period
  double enough = 0.0001;  // learning ends early if −log p of a word stays below this
  uint64_t seed = 1;
};

// The configuration of a recurrent model that is large enough for these tasks.
ModelConfig small_model(const std::string& attention, const std::string& score = "auto");

// The results of learning, measured on unseen strings.
struct Report {
  double right = 0;    // share of strings that greedy search outputs without an error
  double longest = 0;  // the same, among the longest strings only
  double on_line = 0;  // share of words with the highest weight at their source word
  double nll = 0;      // −log p of a word at the end of learning
  int64_t updates = 0;
  double seconds = 0;  // of processor time
};

Report learn(const LearningTask& task);

}  // namespace fovea::learning
