// Each attention mechanism learns the tasks that it can learn, attends to the expected words, and
// fails where its definition says so.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "learning/learner.h"
#include "support/network_settings.h"

namespace fovea::learning {
namespace {

struct Learner {
  const char* attention;
  const char* score;
  DecoderForm decoder;
  Task task;
  int64_t updates = 800;
  uint64_t seed = 1;
};

std::ostream& operator<<(std::ostream& out, const Learner& p) {
  out << p.attention;
  if (std::string(p.score) != "auto") out << ' ' << p.score;
  return out << (p.decoder == DecoderForm::luong ? ", luong" : ", bahdanau")
             << (p.task == Task::copy ? ", copy" : ", reverse");
}

LearningTask task_of(const Learner& p) {
  LearningTask task{.model = small_model(p.attention, p.score)};
  auto& own = recurrent_of(task.model);
  own.decoder = p.decoder;
  own.cell = p.decoder == DecoderForm::luong ? Cell::lstm : Cell::gru;
  if (own.attention.kind == "local-m") own.attention.window = 2;
  task.strings.task = p.task;
  task.updates = p.updates;
  task.seed = p.seed;
  return task;
}

Report measured(const Learner& p, const LearningTask& task) {
  const Report r = learn(task);
  std::ostringstream name;
  name << p << ", " << task.strings.shortest << " to " << task.strings.longest;
  std::printf("%-44s %5.1f s %5ld updates, right %5.1f %% (longest %5.1f %%), in line %5.1f %%\n",
              name.str().c_str(), r.seconds, static_cast<long>(r.updates), 100 * r.right,
              100 * r.longest, 100 * r.on_line);
  std::fflush(stdout);
  return r;
}

constexpr DecoderForm kBahdanau = DecoderForm::bahdanau, kLuong = DecoderForm::luong;

class Learns : public ::testing::TestWithParam<Learner> {};

TEST_P(Learns, StringsAndTheirAlignment) {
  const Report r = measured(GetParam(), task_of(GetParam()));
  const bool draws = std::string(GetParam().attention) == "hard-sample";
  EXPECT_GE(r.right, draws ? 0.95 : 0.99);
  EXPECT_GE(r.on_line, 0.98);
}

// Sampling finds more than one solution. With about one seed in four, hard-sample learns to reverse
// by attending one word off the line and storing the word in its state. Seed 2 does not.
INSTANTIATE_TEST_SUITE_P(
    Attention, Learns,
    ::testing::Values(Learner{"global", "general", kBahdanau, Task::copy, 1200},
                      Learner{"global", "additive", kLuong, Task::copy},
                      Learner{"global", "additive", kLuong, Task::reverse},
                      Learner{"local-m", "general", kBahdanau, Task::copy},
                      Learner{"local-p", "general", kLuong, Task::copy},
                      Learner{"local-p", "general", kLuong, Task::reverse},
                      Learner{"hard-argmax", "general", kLuong, Task::copy, 1200},
                      Learner{"hard-argmax", "general", kLuong, Task::reverse, 1200},
                      Learner{"hard-sample", "general", kLuong, Task::copy, 2500},
                      Learner{"hard-sample", "general", kLuong, Task::reverse, 2500, 2},
                      Learner{"forward", "additive", kLuong, Task::copy},
                      Learner{"window", "auto", kBahdanau, Task::copy}));

// Mechanisms that only move forward cannot reverse. (With a slack of 1, forward attention may move
// back by one word at each step, which is enough.)
class CannotReverse : public ::testing::TestWithParam<Learner> {};

TEST_P(CannotReverse, LongStrings) {
  LearningTask task = task_of(GetParam());
  recurrent_of(task.model).attention.slack = 0;
  const Report r = measured(GetParam(), task);
  EXPECT_LE(r.right, 0.5);
  EXPECT_LE(r.longest, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Attention, CannotReverse,
                         ::testing::Values(Learner{"local-m", "general", kLuong, Task::reverse},
                                           Learner{"forward", "additive", kLuong, Task::reverse},
                                           Learner{"window", "auto", kLuong, Task::reverse}));

// One vector for the whole sentence (the last state, or a context that is computed once) suffices
// for short strings, but not for those of the tests above.
class OneVector : public ::testing::TestWithParam<Learner> {};

TEST_P(OneVector, IsEnoughForShortStringsOnly) {
  LearningTask task = task_of(GetParam());
  EXPECT_LE(measured(GetParam(), task).longest, 0.05);
  task.strings.shortest = 1, task.strings.longest = 4;
  EXPECT_GE(measured(GetParam(), task).right, 0.95);
}

// The mechanisms whose weights depend only on the sentence.
std::vector<Learner> one_vector_learners() {
  std::vector<Learner> all;
  for (const AttentionMechanism& mechanism : attention_mechanisms()) {
    if (mechanism.query != AttentionMechanism::Query::sentence) continue;
    const bool scored = mechanism.scoring == AttentionMechanism::ScoreUse::score;
    const bool cho = mechanism.first_state == AttentionMechanism::FirstState::context;
    all.push_back(
        {mechanism.about.name, scored ? "general" : "auto", cho ? kBahdanau : kLuong, Task::copy});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Attention, OneVector, ::testing::ValuesIn(one_vector_learners()));

}  // namespace
}  // namespace fovea::learning
