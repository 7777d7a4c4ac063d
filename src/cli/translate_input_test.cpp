#include "cli/translate_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "text_samples.h"

namespace fovea {
namespace {

class TranslateInputTest : public testing::Test {
 protected:
  std::vector<std::string> rest(TranslateInput& input) {
    std::vector<std::string> lines;
    for (ReadLine line; input.next(line);) lines.push_back(line.where + "=" + line.text);
    return lines;
  }

  samples::Folder folder_;
};

using Lines = std::vector<std::string>;

TEST_F(TranslateInputTest, LinesHaveTheirPlace) {
  const std::string path = folder_.write("in", "one\n\nthree");
  TranslateInput input(path);
  EXPECT_EQ(input.name(), path);
  EXPECT_TRUE(input.ready()) << "files are always ready";
  EXPECT_EQ(rest(input), (Lines{path + ":1=one", path + ":2=", path + ":3=three"}));
  ReadLine line;
  EXPECT_FALSE(input.next(line));
}

TEST_F(TranslateInputTest, LookingAheadLosesNoLine) {
  const std::string path = folder_.write("in", "one\ntwo\nthree\n");
  TranslateInput input(path);
  const auto& ahead = input.look_ahead([](const auto&) { return true; });
  ASSERT_EQ(ahead.size(), 3u) << "a file does not pause";
  EXPECT_EQ(ahead[1].text, "two");
  EXPECT_EQ(rest(input), (Lines{path + ":1=one", path + ":2=two", path + ":3=three"}));
}

TEST_F(TranslateInputTest, LookingAheadEndsAfterEnoughText) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "a line of text\n";
  TranslateInput input(folder_.write("in", text));
  const size_t lines = input.look_ahead([](const auto&) { return false; }).size();
  EXPECT_GT(lines, 10u);
  EXPECT_LT(lines, 100'000u);
  EXPECT_EQ(rest(input).size(), 100'000u);
}

TEST_F(TranslateInputTest, AWriterThatPausesIsAnswered) {
  const std::string fifo = folder_ / "fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  int end = -1;
  std::thread writer([&] {
    end = open(fifo.c_str(), O_WRONLY | O_CLOEXEC);
    ASSERT_EQ(write(end, "one\ntwo\n", 8), 8);
  });
  TranslateInput input(fifo);
  writer.join();
  const auto two_lines = [](const std::deque<ReadLine>& lines) { return lines.size() == 2; };
  EXPECT_EQ(input.look_ahead(two_lines).size(), 2u);
  EXPECT_TRUE(input.ready()) << "two lines are buffered";
  ReadLine line;
  ASSERT_TRUE(input.next(line));
  ASSERT_TRUE(input.next(line));
  EXPECT_EQ(line.text, "two");
  EXPECT_FALSE(input.ready()) << "the writer is silent";
  close(end);
  EXPECT_TRUE(input.ready()) << "the end does not wait";
  EXPECT_FALSE(input.next(line));
}

TEST_F(TranslateInputTest, LongLinesAreMarked) {
  TranslateInput input(folder_.write("in", std::string(LineReader::kLimit + 1, 'a') + "\nb\n"));
  ReadLine line;
  ASSERT_TRUE(input.next(line));
  EXPECT_TRUE(line.cut);
  EXPECT_EQ(line.text.size(), LineReader::kLimit);
  ASSERT_TRUE(input.next(line));
  EXPECT_FALSE(line.cut);
  EXPECT_EQ(line.text, "b");
}

TEST_F(TranslateInputTest, LinesAreCounted) {
  const std::string three = folder_.write("a", "1\n2\n3\n"), open_end = folder_.write("b", "1\n2"),
                    empty = folder_.write("c", "");
  EXPECT_EQ(count_lines({three}), 3);
  EXPECT_EQ(count_lines({three, open_end, empty}), 5);
  EXPECT_EQ(count_lines({}), 0);
  EXPECT_EQ(count_lines({three, folder_.write("d.gz", "x\n")}), std::nullopt);
  EXPECT_EQ(count_lines({three, folder_ / "missing"}), std::nullopt);
  EXPECT_EQ(count_lines({folder_.path()}), std::nullopt);
}

}  // namespace
}  // namespace fovea
