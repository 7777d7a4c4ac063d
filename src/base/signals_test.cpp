#include "base/signals.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

namespace fovea {
namespace {

// Runs `action` in a child with the handlers. Returns its exit code, or −signal if it was killed.
template <class Action>
int in_child(Action action) {
  const pid_t child = fork();
  if (child == 0) {
    watch_signals();
    action();
    _exit(stop_exit_code());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(Signals, TheFirstOnlySetsTheFlag) {
  EXPECT_EQ(in_child([] {}), 0);
  EXPECT_EQ(in_child([] { raise(SIGINT); }), 130);
  EXPECT_EQ(in_child([] { raise(SIGTERM); }), 143);
  std::signal(SIGHUP, SIG_DFL);
  EXPECT_EQ(in_child([] { raise(SIGHUP); }), 129);
  EXPECT_EQ(in_child([] {
              raise(SIGTERM);
              _exit(stop_requested() ? 77 : 78);
            }),
            77);
}

TEST(Signals, AClosedTerminalDoesNotMatterUnderNohup) {
  std::signal(SIGHUP, SIG_IGN);
  EXPECT_EQ(in_child([] { raise(SIGHUP); }), 0);
  std::signal(SIGHUP, SIG_DFL);
}

TEST(Signals, TheSecondEndsAtOnce) {
  const auto twice = [](int first, int second) {
    return in_child([=] {
      raise(first);
      raise(second);
      _exit(99);
    });
  };
  EXPECT_EQ(twice(SIGINT, SIGINT), 130);
  EXPECT_EQ(twice(SIGINT, SIGTERM), 143);
}

TEST(Signals, AClosedPipeDoesNotKill) {
  EXPECT_EQ(in_child([] {
              int ends[2];
              if (pipe(ends) != 0) _exit(1);
              close(ends[0]);
              const ssize_t n = write(ends[1], "x", 1);
              _exit(n == -1 && !stop_requested() ? 55 : 56);
            }),
            55);
}

TEST(Signals, CanBeRequestedByHand) {
  request_stop(SIGTERM);
  EXPECT_TRUE(stop_requested());
  EXPECT_EQ(stop_exit_code(), 143);
  request_stop(0);
  EXPECT_FALSE(stop_requested());
}

}  // namespace
}  // namespace fovea
