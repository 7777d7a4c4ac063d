#include "eval/alignment_error_rate.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"

namespace fovea {
namespace {

Links links(const std::string& line) { return parse_pharaoh(line, "here"); }

TEST(AlignmentErrorRate, ByHand) {
  // A = {0-0, 1-1, 2-2}, S = {0-0, 3-3}, P = S + {1-1}
  const GoldLinks gold = parse_talp("1-1 4-4 2p2", "gold");
  AlignmentCounts counts = count_links(links("0-0 1-1 2-2"), gold);
  EXPECT_DOUBLE_EQ(counts.precision(), 2.0 / 3);
  EXPECT_DOUBLE_EQ(counts.recall(), 1.0 / 2);
  EXPECT_DOUBLE_EQ(counts.error_rate(), 1 - 3.0 / 5);
  counts += count_links(links("0-0"), parse_talp("1-1", "gold"));  // sums, not means
  EXPECT_DOUBLE_EQ(counts.error_rate(), 1 - 5.0 / 7);
}

TEST(AlignmentErrorRate, Empty) {
  EXPECT_EQ(AlignmentCounts{}.error_rate(), 0);
  EXPECT_EQ(count_links({}, parse_talp("1-1", "gold")).error_rate(), 1);
  EXPECT_EQ(count_links({{0, 0}}, {}).error_rate(), 1);
  EXPECT_EQ(count_links({}, parse_talp("1p1", "gold")).error_rate(), 0);
}

Links joined(const std::string& method, const std::string& forward, const std::string& backward) {
  return symmetrize(symmetry_of(method), links(forward), reversed(links(backward)));
}

TEST(Symmetrization, ByHand) {
  const std::string forward = "0-0 1-1 2-1 5-4", backward = "0-0 2-1 4-4";
  EXPECT_EQ(joined("intersection", forward, backward), links("0-0"));
  EXPECT_EQ(joined("union", forward, backward), links("0-0 1-1 1-2 2-1 4-4 5-4"));
  // 1-1 joins two words without links and touches 0-0. 1-2 and 2-1 would give one of its words a
  // second link.
  EXPECT_EQ(joined("grow-diag", forward, backward), links("0-0 1-1"));
  // 5-4 (forward) comes before 4-4 (backward), so word 4 already has a link.
  EXPECT_EQ(joined("grow-diag-final", forward, backward), links("0-0 1-1 5-4"));
  // For growing, one word without a link suffices: 1-2 and 2-1 touch 1-1.
  EXPECT_EQ(joined("grow-diag-final-and", forward, backward), links("0-0 1-1 1-2 2-1 5-4"));
  for (const char* method : {"intersection", "union", "grow-diag", "grow-diag-final"}) {
    EXPECT_EQ(joined(method, "", ""), Links{});
    EXPECT_EQ(joined(method, "3-1", "1-3"), links("3-1"));
  }
  EXPECT_THROW(symmetry_of("grow"), Error);
}

// Sentences of the English-French Hansards for which the order of growing matters.
TEST(Symmetrization, ReproducesPublishedLinks) {
  struct Case {
    const char *forward, *backward, *grown, *final;
  };
  const Case cases[] = {
      {"0-0 1-2 2-1 2-3 3-4 4-6 4-7 5-5 7-14 8-8 8-9 8-12 11-11 12-10 12-13 14-15",
       "0-0 1-1 3-2 4-3 5-5 6-4 6-6 10-9 10-10 12-8 12-11 12-12 14-7 15-14",
       "0-0 1-1 2-3 3-4 4-6 5-5 7-14 8-12 14-15",
       "0-0 1-1 2-3 3-4 4-6 5-5 7-14 8-12 11-11 12-10 14-15"},
      {"0-1 0-3 1-0 1-2 3-5 3-6 4-4 7-7 7-8 8-9", "0-0 2-1 3-2 4-4 5-3 6-5 7-6 8-7 9-8",
       "0-3 1-2 3-5 4-4 5-6 6-7 7-8 8-9", "0-3 1-2 3-5 4-4 5-6 6-7 7-8 8-9"},
      {"0-2 1-0 1-1 1-4 4-5 4-6 4-7 4-8 4-10 6-11", "0-0 1-1 6-2 6-3 6-4 9-5 11-6",
       "0-2 1-1 4-6 6-11", "0-2 1-1 4-6 5-9 6-11"},
      {"0-0 1-1 1-3 2-2 2-4 4-7 4-8 4-10 5-6 6-5 6-9 7-11", "0-0 1-1 4-2 7-4 7-5 10-6 11-7",
       "0-0 1-1 2-4 4-7 5-6 6-5 7-11", "0-0 1-1 2-4 4-7 5-6 6-5 7-11"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(joined("grow-diag", c.forward, c.backward), links(c.grown)) << c.forward;
    EXPECT_EQ(joined("grow-diag-final", c.forward, c.backward), links(c.final)) << c.forward;
  }
}

// All 224 pairs with the figures of their README. The corpus is not part of the repository.
// FOVEA_DATA names the folder that contains hansards-en-fr/.
class HansardsGold : public testing::Test {
 protected:
  void SetUp() override {
    const char* data = std::getenv("FOVEA_DATA");
    folder_ = std::string(data ? data : "") + "/hansards-en-fr/gold/";
    if (!data || !std::filesystem::exists(folder_))
      GTEST_SKIP() << "set FOVEA_DATA to a folder with hansards-en-fr/ to run this";
    gold_ = read_talp(folder_ + "gold.talp");
    forward_ = read_pharaoh(folder_ + "fastalign.forward");
    backward_ = read_pharaoh(folder_ + "fastalign.reverse");
    ASSERT_EQ(gold_.size(), 224u);
  }

  std::string error_rate(const std::vector<Links>& pairs) const {
    AlignmentCounts counts;
    for (size_t i = 0; i < gold_.size(); ++i) counts += count_links(pairs.at(i), gold_[i]);
    return fmt::format("{:.2f}", 100 * counts.error_rate());
  }

  std::string folder_;
  std::vector<GoldLinks> gold_;
  std::vector<Links> forward_, backward_;
};

TEST_F(HansardsGold, HasThePublishedLinksAndFigures) {
  EXPECT_EQ(error_rate(forward_), "15.65");
  struct Case {
    const char *method, *file, *error_rate;
  };
  for (const Case& c : {Case{"intersection", "intersection", "10.37"},
                        {"union", "union", "18.95"},
                        {"grow-diag", "grow-diagonal", "9.52"},
                        {"grow-diag-final", "grow-diagonal-final", "11.28"}}) {
    const std::vector<Links> expected = read_pharaoh(folder_ + "fastalign." + c.file);
    std::vector<Links> found;
    for (size_t i = 0; i < forward_.size(); ++i) {
      found.push_back(symmetrize(symmetry_of(c.method), forward_[i], reversed(backward_[i])));
      EXPECT_EQ(found.back(), expected.at(i)) << c.method << ", pair " << i + 1;
    }
    EXPECT_EQ(error_rate(found), c.error_rate) << c.method;
  }
}

}  // namespace
}  // namespace fovea
