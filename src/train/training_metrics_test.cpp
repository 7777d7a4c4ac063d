#include "train/training_metrics.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/files.h"
#include "temporary.h"

namespace fovea {
namespace {

MetricsLine at(int64_t update, double time) {
  return {.kind = "train",
          .update = update,
          .epoch = 1 + update / 100,
          .values = {{"loss", 4.25 / static_cast<double>(update)}, {"lr", 0.0005}},
          .wall = {{"tokens_per_s", 1234.5}, {"time", time}}};
}

std::string stripped(const std::string& text) {
  std::string out;
  for (size_t from = 0, end; (end = text.find('\n', from)) != text.npos; from = end + 1)
    out.append(without_wall(std::string_view(text).substr(from, end - from))).append("\n");
  return out;
}

void drop_after(const std::string& path, int64_t update) {
  keep_metrics(path, [&](const MetricsLine& line) { return line.update <= update; });
}

TEST(MetricsLine, IsOneObjectWithTheClockLast) {
  EXPECT_EQ(metrics_line(at(100, 1.5)),
            "{\"kind\":\"train\",\"update\":100,\"epoch\":2,\"loss\":0.0425,\"lr\":0.0005,"
            "\"wall\":{\"tokens_per_s\":1234.5,\"time\":1.5}}\n");
  EXPECT_EQ(without_wall(metrics_line(at(100, 1.5))),
            "{\"kind\":\"train\",\"update\":100,\"epoch\":2,\"loss\":0.0425,\"lr\":0.0005");
  EXPECT_EQ(metrics_line({.kind = "valid", .update = 3, .epoch = 1, .values = {{"a\"b", 1}}}),
            "{\"kind\":\"valid\",\"update\":3,\"epoch\":1,\"a\\\"b\":1}\n");
  EXPECT_EQ(without_wall("{\"update\":3}\n"), "{\"update\":3");
}

TEST(MetricsLine, KeepsNumbersExactly) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  std::vector<float> floats{0.1f, 1.0f / 3, 1e-38f, 3.4e38f, 16777217.0f, -0.0f, 4.2499995f};
  uint32_t bits = 1;
  for (int i = 0; i < 1000; ++i) {
    bits = bits * 1664525u + 1013904223u;
    const float value = std::bit_cast<float>(bits);
    if (std::isfinite(value)) floats.push_back(value);
  }
  {
    MetricsLog log(path);
    for (float value : floats) EXPECT_TRUE(log.write({.values = {{"loss", value}}}));
    EXPECT_TRUE(log.write({.values = {{"tokens", 9'007'199'254'740'991.0}}}));
    EXPECT_TRUE(log.sync());
  }
  const auto all = read_metrics(path);
  ASSERT_EQ(all.size(), floats.size() + 1);
  for (size_t i = 0; i < floats.size(); ++i)
    EXPECT_EQ(static_cast<float>(*all[i].value("loss")), floats[i]);
  EXPECT_EQ(*all.back().value("tokens"), 9'007'199'254'740'991.0);
}

TEST(MetricsLine, NumbersThatAreNotFiniteAreNull) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog(path).write({.values = {{"loss", std::nan("")}, {"ppl", HUGE_VAL}}});
  EXPECT_NE(read_file(path).find("\"loss\":null,\"ppl\":null"), std::string::npos);
  EXPECT_TRUE(std::isnan(*read_metrics(path)[0].value("loss")));
  EXPECT_FALSE(read_metrics(path)[0].value("bleu").has_value());
}

TEST(MetricsLine, ReadsBackWhatItWrites) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  MetricsLog(path).write(at(100, 1.5));
  const MetricsLine read = read_metrics(path).at(0);
  EXPECT_EQ(read.kind, "train");
  EXPECT_EQ(read.update, 100);
  EXPECT_EQ(read.epoch, 2);
  EXPECT_EQ(read.values, at(100, 1.5).values);
  EXPECT_EQ(read.wall, at(100, 1.5).wall);
}

TEST(MetricsLine, AResumedRunHasTheLogOfAnUninterruptedOne) {
  const TemporaryFolder folder;
  const std::string whole = folder / "whole.jsonl", resumed = folder / "resumed.jsonl";
  {
    MetricsLog log(whole);
    for (int update = 1; update <= 50; ++update) log.write(at(update, update));
  }
  {
    MetricsLog log(resumed);
    for (int update = 1; update <= 37; ++update) log.write(at(update, update));
  }
  std::ofstream(resumed, std::ios::app) << "{\"kind\":\"train\",\"upd";  // killed during a write
  EXPECT_EQ(read_metrics(resumed).size(), 37u);
  drop_after(resumed, 30);
  EXPECT_EQ(read_metrics(resumed).size(), 30u);
  {
    MetricsLog log(resumed);
    for (int update = 31; update <= 50; ++update) log.write(at(update, 1000 + update));
  }
  EXPECT_NE(read_file(resumed), read_file(whole));
  EXPECT_EQ(stripped(read_file(resumed)), stripped(read_file(whole)));
}

TEST(MetricsLine, DroppingNothingDoesNotWrite) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  drop_after(path, 5);
  EXPECT_FALSE(std::filesystem::exists(path));
  MetricsLog(path).write(at(5, 1));
  const auto before = std::filesystem::last_write_time(path);
  drop_after(path, 5);
  EXPECT_EQ(std::filesystem::last_write_time(path), before);
  EXPECT_EQ(read_metrics(path).size(), 1u);
  drop_after(path, -1);
  EXPECT_EQ(read_file(path), "");
}

TEST(MetricsLine, TailFollowsAGrowingFile) {
  const TemporaryFolder dir;
  const std::string path = dir / "metrics.jsonl";
  MetricsTail tail(path);
  EXPECT_TRUE(tail.read().lines.empty()) << "no file";
  const auto add = [&](const std::string& text) {
    std::ofstream(path, std::ios::app | std::ios::binary) << text;
  };
  add(metrics_line(at(1, 0)) + metrics_line(at(2, 0)));
  MetricsTail::News news = tail.read();
  EXPECT_TRUE(news.replaced);
  EXPECT_EQ(news.lines.size(), 2u);
  EXPECT_TRUE(tail.read().lines.empty());
  const std::string third = metrics_line(at(3, 0));
  add(third.substr(0, 10));
  EXPECT_TRUE(tail.read().lines.empty()) << "the line is not complete";
  add(third.substr(10));
  news = tail.read();
  EXPECT_FALSE(news.replaced);
  ASSERT_EQ(news.lines.size(), 1u);
  EXPECT_EQ(news.lines[0].update, 3);

  drop_after(path, 1);  // the run was resumed
  add(metrics_line(at(2, 1)) + metrics_line(at(3, 1)) + metrics_line(at(4, 1)));
  news = tail.read();
  EXPECT_TRUE(news.replaced);
  EXPECT_EQ(news.lines.size(), 4u);
  add("nonsense\n");
  const std::string wrong = message_of(ExitCode::data, [&] { tail.read(); });
  EXPECT_NE(wrong.find("metrics.jsonl:5: not a line"), std::string::npos) << wrong;
}

TEST(MetricsLine, NamesTheWrongLine) {
  const TemporaryFolder folder;
  const std::string path = folder / "metrics.jsonl";
  for (const char* bad : {"", "[]", "{", "{\"kind\":1,\"update\":1}", "{\"kind\":\"train\"}",
                          "{\"kind\":\"train\",\"update\":1.5}", "\xff", "nonsense"}) {
    std::ofstream(path) << metrics_line(at(1, 1)) << bad << "\n";
    const std::string message = message_of(ExitCode::data, [&] { read_metrics(path); });
    EXPECT_NE(message.find(path + ":2:"), std::string::npos) << message;
    drop_after(path, 10);
    EXPECT_EQ(read_metrics(path).size(), 1u);
  }
  message_of(ExitCode::files, [&] { read_metrics(folder / "missing"); });
}

}  // namespace
}  // namespace fovea
