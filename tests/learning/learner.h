#pragma once

#include <cstdint>
#include <string>

#include "models/config.h"
#include "text/batch.h"

// Small models that learn to copy and to reverse random strings.
namespace fovea::learning {

enum class Task { copy, reverse };

// Strings of `letters` different symbols, of all lengths from `shortest` to `longest`.
struct Strings {
  Task task = Task::copy;
  int64_t shortest = 5, longest = 20, letters = 20;

  // `count` pairs, the n-th batch of a seed.
  PairBatch batch(int64_t count, uint64_t seed, int64_t n) const;
};

struct Lesson {
  ModelConfig model;
  Strings strings = {};
  int64_t updates = 1000, pairs = 64;
  double lr = 0.005;       // falls to 0 along half a cosine
  double enough = 0.0001;  // −log p of a word at which learning ends early, when it stays below
  uint64_t seed = 1;
};

// A recurrent model that is as large as the lessons need.
ModelConfig small_model(const std::string& attention, const std::string& score = "auto");

// What was learnt, on strings that were never seen.
struct Report {
  double right = 0;    // share of strings that greedy search gives without a mistake
  double longest = 0;  // the same of the longest strings alone
  double on_line = 0;  // share of words whose highest weight is where the word came from
  double nll = 0;      // −log p of a word, at the end of learning
  int64_t updates = 0;
  double seconds = 0;  // of processor time
};

Report learn(const Lesson& lesson);

}  // namespace fovea::learning
