#include "base/log.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/utf8.h"
#include "temporary.h"

namespace fovea {
namespace {

// Returns the text that `action` writes to stderr.
template <class Action>
std::string captured(Action action) {
  testing::internal::CaptureStderr();
  action();
  return testing::internal::GetCapturedStderr();
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(Log, PlainLinesCarryTimeAndLevel) {
  const std::string text = captured([] {
    start_log({.format = LogFormat::plain});
    log_info("read {} lines", 3);
    log_warning("odd");
  });
  const auto lines = split(text);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(lines[0].ends_with("] read 3 lines")) << text;
  EXPECT_EQ(lines[0].size(), std::string("[2026-01-01 12:00:00] read 3 lines").size());
  EXPECT_TRUE(lines[1].ends_with("] warning: odd")) << text;
}

TEST(Log, JsonLinesAreJson) {
  const std::string text = captured([] {
    start_log({.format = LogFormat::json});
    log_info("a \"b\"\n\xff");
    log_error("c");
    Progress progress("train", 10, {.unit = "updates", .interval = 0});
    progress.note("loss 1");
    progress.set(5);
  });
  const auto lines = split(text);
  ASSERT_EQ(lines.size(), 4u) << text;
  EXPECT_EQ(nlohmann::json::parse(lines[0])["message"], "a \"b\"\n\uFFFD");
  EXPECT_EQ(nlohmann::json::parse(lines[0])["level"], "info");
  EXPECT_EQ(nlohmann::json::parse(lines[1])["level"], "error");
  const auto progress = nlohmann::json::parse(lines[2]);
  EXPECT_EQ(progress["done"], 5);
  EXPECT_EQ(progress["total"], 10);
  EXPECT_EQ(progress["note"], "loss 1");
  EXPECT_EQ(nlohmann::json::parse(lines[3])["finished"], true);
}

TEST(Log, ShowsTheFirstTenLineWarnings) {
  const auto warnings_of = [](int bad) {
    return split(captured([&] {
      start_log({.format = LogFormat::tty});
      LineWarnings warnings("lines that are odd");
      for (int i = 1; i <= bad; ++i) warnings.add("t.txt:{}: odd", i);
    }));
  };
  EXPECT_EQ(warnings_of(0).size(), 0u);
  EXPECT_EQ(warnings_of(10).size(), 10u);
  const auto many = warnings_of(1244);
  ASSERT_EQ(many.size(), 11u);
  EXPECT_TRUE(many[9].ends_with("t.txt:10: odd")) << many[9];
  EXPECT_TRUE(many[10].ends_with("and 1,234 more lines that are odd")) << many[10];
}

TEST(Log, QuietShowsOnlyWarningsAndErrors) {
  const std::string text = captured([] {
    start_log({.format = LogFormat::plain, .quiet = true});
    log_info("hidden");
    Progress progress("train", 10, {.unit = "", .interval = 0});
    progress.set(5);
    progress.finish();
    log_error("shown");
  });
  EXPECT_EQ(split(text).size(), 1u) << text;
}

TEST(Log, AutomaticIsPlainWithoutATerminal) {
  captured([] {
    start_log({});
    EXPECT_EQ(log_format(), LogFormat::plain);
  });
}

TEST(Log, ColoursUnlessForbidden) {
  unsetenv("NO_COLOR");
  const auto text = [] {
    return captured([] {
      start_log({.format = LogFormat::tty});
      log_warning("x");
    });
  };
  EXPECT_NE(text().find("\x1b[1;33mwarning: "), std::string::npos);
  setenv("NO_COLOR", "1", 1);
  EXPECT_EQ(text(), "warning: x\n");
  unsetenv("NO_COLOR");
}

TEST(Progress, TerminalBarFitsAndIsDrawnAtMostTenTimesASecond) {
  setenv("COLUMNS", "60", 1);
  const auto begin = std::chrono::steady_clock::now();
  const std::string text = captured([] {
    start_log({.format = LogFormat::tty});
    Progress progress("train", 200, {.unit = "updates"});
    progress.note(std::string(100, 'n'));
    for (int i = 0; i < 200; ++i) {
      progress.advance();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (i == 150) log_info("between");
    }
  });
  unsetenv("COLUMNS");
  int drawn = 0;
  for (size_t at = 0; (at = text.find('\r', at)) != std::string::npos; ++drawn) {
    at += 4;  // after the carriage return and "erase the line"
    const std::string shown = text.substr(at, text.find_first_of("\r\n", at) - at);
    EXPECT_LE(display_width(shown), 60) << shown;
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_LE(drawn, 10 * took.count() + 6);  // the first, the last, and two around the log message
  EXPECT_GE(drawn, 2);
  EXPECT_NE(text.find("\x1b[Kbetween\n"), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n"));
}

TEST(Progress, PlainLinesFollowTheInterval) {
  const std::string text = captured([] {
    start_log({.format = LogFormat::plain});
    Progress progress("train", 1000, {.unit = "updates", .interval = 60});
    for (int i = 0; i < 1000; ++i) progress.advance();
  });
  const auto lines = split(text);
  ASSERT_EQ(lines.size(), 1u) << text;  // the last state only
  EXPECT_NE(lines[0].find("train 1,000/1,000 (100 %) | "), std::string::npos) << text;
}

TEST(Progress, SaysNothingIfNothingWasDone) {
  for (const LogFormat format : {LogFormat::plain, LogFormat::json, LogFormat::tty}) {
    const std::string text = captured([&] {
      start_log({.format = format});
      Progress progress("train", 10, {.unit = "updates"});
      progress.begin_at(5);
    });
    EXPECT_EQ(text, "");
  }
}

TEST(Log, NumbersAndTimes) {
  EXPECT_EQ(with_commas(0), "0");
  EXPECT_EQ(with_commas(999), "999");
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-123456), "-123,456");
  EXPECT_EQ(with_commas(-123), "-123");
  EXPECT_EQ(short_duration(42), "42s");
  EXPECT_EQ(short_duration(187), "3m07s");
  EXPECT_EQ(short_duration(7500), "2h05m");
  EXPECT_EQ(short_duration(1e6), "11d13h");
}

}  // namespace
}  // namespace fovea
