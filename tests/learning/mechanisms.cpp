// Each attention learns the strings it can learn, looks where it should, and fails where its
// definition says that it must.
#include <gtest/gtest.h>

#include <cstdio>
#include <sstream>

#include "learning/learner.h"

namespace fovea::learning {
namespace {

struct Pupil {
  const char* attention;
  const char* score;
  Decoder decoder;
  Task task;
  int64_t updates = 800;
  uint64_t seed = 1;
};

std::ostream& operator<<(std::ostream& out, const Pupil& p) {
  out << p.attention;
  if (std::string(p.score) != "auto") out << ' ' << p.score;
  return out << (p.decoder == Decoder::luong ? ", luong" : ", bahdanau")
             << (p.task == Task::copy ? ", copy" : ", reverse");
}

Lesson lesson_of(const Pupil& p) {
  Lesson lesson{.model = small_model(p.attention, p.score)};
  lesson.model.decoder = p.decoder;
  lesson.model.cell = p.decoder == Decoder::luong ? Cell::lstm : Cell::gru;
  if (lesson.model.attention.kind == "local-m") lesson.model.attention.window = 2;
  lesson.strings.task = p.task;
  lesson.updates = p.updates;
  lesson.seed = p.seed;
  return lesson;
}

Report taught(const Pupil& p, const Lesson& lesson) {
  const Report r = learn(lesson);
  std::ostringstream name;
  name << p << ", " << lesson.strings.shortest << " to " << lesson.strings.longest;
  std::printf("%-44s %5.1f s %5ld updates, right %5.1f %% (longest %5.1f %%), in line %5.1f %%\n",
              name.str().c_str(), r.seconds, static_cast<long>(r.updates), 100 * r.right,
              100 * r.longest, 100 * r.on_line);
  std::fflush(stdout);
  return r;
}

constexpr Decoder kBahdanau = Decoder::bahdanau, kLuong = Decoder::luong;

class Learns : public ::testing::TestWithParam<Pupil> {};

TEST_P(Learns, StringsAndWhereTheyComeFrom) {
  const Report r = taught(GetParam(), lesson_of(GetParam()));
  const bool draws = std::string(GetParam().attention) == "hard-sample";
  EXPECT_GE(r.right, draws ? 0.95 : 0.99);
  EXPECT_GE(r.on_line, 0.98);
}

// Samples find more than one way: from about one start in four, hard-sample learns to reverse by
// looking one word off the line and remembering what it saw. Seed 2 is not such a start.
INSTANTIATE_TEST_SUITE_P(
    Attention, Learns,
    ::testing::Values(Pupil{"global", "general", kBahdanau, Task::copy, 1200},
                      Pupil{"global", "additive", kLuong, Task::copy},
                      Pupil{"global", "additive", kLuong, Task::reverse},
                      Pupil{"local-m", "general", kBahdanau, Task::copy},
                      Pupil{"local-p", "general", kLuong, Task::copy},
                      Pupil{"local-p", "general", kLuong, Task::reverse},
                      Pupil{"hard-argmax", "general", kLuong, Task::copy, 1200},
                      Pupil{"hard-argmax", "general", kLuong, Task::reverse, 1200},
                      Pupil{"hard-sample", "general", kLuong, Task::copy, 2500},
                      Pupil{"hard-sample", "general", kLuong, Task::reverse, 2500, 2},
                      Pupil{"forward", "additive", kLuong, Task::copy},
                      Pupil{"window", "auto", kBahdanau, Task::copy}));

// What only moves forward cannot reverse. (With a slack of 1 the focus of forward attention may
// creep back by a word at each step, which is enough.)
class CannotReverse : public ::testing::TestWithParam<Pupil> {};

TEST_P(CannotReverse, LongStrings) {
  Lesson lesson = lesson_of(GetParam());
  lesson.model.attention.slack = 0;
  const Report r = taught(GetParam(), lesson);
  EXPECT_LE(r.right, 0.5);
  EXPECT_LE(r.longest, 0.05);
}

INSTANTIATE_TEST_SUITE_P(Attention, CannotReverse,
                         ::testing::Values(Pupil{"local-m", "general", kLuong, Task::reverse},
                                           Pupil{"forward", "additive", kLuong, Task::reverse},
                                           Pupil{"window", "auto", kLuong, Task::reverse}));

// One vector for the whole sentence, be it the last state or one that is attended to once, is
// enough for short strings and not for those that the others above have learnt.
class OneVector : public ::testing::TestWithParam<Pupil> {};

TEST_P(OneVector, IsEnoughForShortStringsOnly) {
  Lesson lesson = lesson_of(GetParam());
  EXPECT_LE(taught(GetParam(), lesson).longest, 0.05);
  lesson.strings.shortest = 1, lesson.strings.longest = 4;
  EXPECT_GE(taught(GetParam(), lesson).right, 0.95);
}

INSTANTIATE_TEST_SUITE_P(Attention, OneVector,
                         ::testing::Values(Pupil{"none", "auto", kLuong, Task::copy},
                                           Pupil{"static", "general", kLuong, Task::copy}));

}  // namespace
}  // namespace fovea::learning
