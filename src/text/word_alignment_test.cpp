#include "text/word_alignment.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "base/check.h"

namespace fovea {
namespace {

Links links(const std::string& line) { return parse_pharaoh(line, "here"); }

std::string error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ExitCode::data) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(AlignmentFormats, PharaohIsSortedWithoutDuplicates) {
  EXPECT_EQ(links(" 2-1\t0-0  2-1 0-3:0.25 "), (Links{{0, 0}, {0, 3}, {2, 1}}));
  EXPECT_EQ(links(""), Links{});
  EXPECT_EQ(parse_pharaoh("1-1 3-2", "here", CountedFrom::one), (Links{{0, 0}, {2, 1}}));
}

TEST(AlignmentFormats, TalpHasSureAndPossibleLinks) {
  const GoldLinks gold = parse_talp("2p1 1-1 3p3 2-1", "here");
  EXPECT_EQ(gold.sure, (Links{{0, 0}, {1, 0}}));
  EXPECT_EQ(gold.possible, (Links{{0, 0}, {1, 0}, {2, 2}}));
  EXPECT_EQ(parse_talp("0p1", "here", CountedFrom::zero).possible, (Links{{0, 1}}));
}

TEST(AlignmentFormats, MalformedLinksAreErrors) {
  for (const char* bad : {"1", "1-", "-1", "1--2", "a-b", "1_2", "1-2-3", "1-2:", "1-2:x", "1p2",
                          "1-99999999999", "1000001-1", "--", "p", "1-2,"}) {
    const std::string message = error_of([&] { parse_pharaoh(bad, "a.links:7"); });
    EXPECT_TRUE(message.starts_with("a.links:7: '")) << bad << ": " << message;
  }
  EXPECT_NE(error_of([] { parse_talp("1-1 1x2", "gold:3"); }).find("gold:3: '1x2'"),
            std::string::npos);
  EXPECT_NE(error_of([] { parse_talp("0-1", "gold:3"); }).find("`gold_from` 0"), std::string::npos);
}

TEST(AlignmentFormats, ErrorsHaveFileAndLine) {
  const std::string path = testing::TempDir() + "alignment_test.links";
  std::ofstream(path) << "0-0\n\n1-1 x\n";
  EXPECT_TRUE(error_of([&] { read_pharaoh(path); }).starts_with(path + ":3: 'x'"));
  std::ofstream(path) << "1-1 2p1\r\n\n";
  const std::vector<GoldLinks> gold = read_talp(path);
  ASSERT_EQ(gold.size(), 2u);
  EXPECT_EQ(gold[0].possible, (Links{{0, 0}, {1, 0}}));
  EXPECT_TRUE(gold[1].possible.empty());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace fovea
