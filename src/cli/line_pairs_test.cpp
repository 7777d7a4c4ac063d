#include "cli/line_pairs.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "temporary.h"
#include "text_samples.h"

namespace fovea {
namespace {

class LinePairsTest : public testing::Test {
 protected:
  // The pairs of two files as "source|target".
  std::vector<std::string> read(const std::string& source, const std::string& target) {
    folder_.write("s", source);
    folder_.write("t", target);
    std::vector<std::string> pairs;
    LinePairs lines(folder_ / "s", folder_ / "t");
    while (lines.next())
      pairs.push_back(std::string(lines.source.text) + "|" + std::string(lines.target.text));
    return pairs;
  }

  samples::Folder folder_;
};

using Lines = std::vector<std::string>;

TEST_F(LinePairsTest, LinesThatCorrespond) {
  EXPECT_EQ(read("a\nb\n", "1\n2\n"), (Lines{"a|1", "b|2"}));
  EXPECT_EQ(read("a\n\nc", "\n2\n3\n"), (Lines{"a|", "|2", "c|3"}));
  EXPECT_EQ(read("", ""), Lines{});
}

TEST_F(LinePairsTest, TheFirstLineWithoutAPartnerIsNamed) {
  const std::string longer = message_of(ExitCode::data, [&] { read("a\nb\nc\n", "1\n"); });
  EXPECT_EQ(longer, (folder_ / "s") + ":2: no matching line in " + (folder_ / "t") +
                        "; both files must have the same number of lines");
  const std::string shorter = message_of(ExitCode::data, [&] { read("", "1\n"); });
  EXPECT_TRUE(shorter.starts_with((folder_ / "t") + ":1: no matching line in ")) << shorter;
}

TEST_F(LinePairsTest, FilesAreCheckedBeforeTheyAreRead) {
  const std::string a = folder_.write("a", "a\n"), b = folder_.write("b", "b\n");
  check_pair_files(a, b, "-");
  check_pair_files(a, b, folder_ / "new");
  check_pair_files("-", b, "-");
  EXPECT_EQ(message_of(ExitCode::usage, [] { check_pair_files("-", "-", "-"); }),
            "only one of the two files can be standard input");
  for (const std::string& output : {a, b}) {
    const std::string message =
        message_of(ExitCode::usage, [&] { check_pair_files(a, b, output); });
    EXPECT_EQ(message, "`output` " + output + ": is also the input; name another file");
  }
}

}  // namespace
}  // namespace fovea
