#include "eval/ter.h"

#include <gtest/gtest.h>

#include <random>

#include "eval/tercom.h"

namespace fovea {
namespace {

int edits(std::vector<uint32_t> hypothesis, std::vector<uint32_t> reference) {
  return count_edits(hypothesis, reference);
}

TEST(Tercom, EditsWithoutShifts) {
  EXPECT_EQ(edits({}, {}), 0);
  EXPECT_EQ(edits({1, 2}, {}), 2);
  EXPECT_EQ(edits({}, {1, 2, 3}), 3);
  EXPECT_EQ(edits({1, 2, 3}, {1, 9, 3}), 1);
  EXPECT_EQ(edits({1, 3}, {1, 2, 3}), 1);
}

TEST(Tercom, AShiftedRunIsOneEdit) {
  EXPECT_EQ(edits({4, 5, 6, 1, 2, 3}, {1, 2, 3, 4, 5, 6}), 1);
  EXPECT_EQ(edits({1, 2, 3, 9, 8, 7, 6, 5}, {9, 8, 7, 1, 2, 3, 6, 5}), 1);
}

// Snover et al., section 2.1: one shift, one substitution, one insertion and one deletion.
TEST(Ter, TheExampleOfThePaper) {
  double score = ter({"this week the saudis denied information published in the new york times"},
                     {"saudi arabia denied this week information published in the american new "
                      "york times"});
  EXPECT_NEAR(score, 100.0 * 4 / 13, 1e-9);
}

TEST(Ter, EmptySides) {
  EXPECT_EQ(ter({""}, {""}), 0.0);
  EXPECT_EQ(ter({"a"}, {""}), 100.0);
  EXPECT_EQ(ter({""}, {"a b"}), 100.0);
}

TEST(Ter, DividesTheFewestEditsByTheMeanLength) {
  std::vector<Lines> references{{"a b c"}, {"a x"}};
  auto statistics = Ter().statistics({"a b"}, references);
  EXPECT_EQ(statistics.row(0)[0], 1.0);
  EXPECT_EQ(statistics.row(0)[1], 2.5);
}

TEST(Ter, ReferencesAreTokenizedTwice) {
  auto statistics = Ter({.normalized = true}).statistics({"x"}, std::vector<Lines>{{"it's\tx"}});
  EXPECT_EQ(statistics.row(0)[1], 3.0);
}

// Very different lengths widen the beam. Very long lines must not need a quadratic table.
TEST(Tercom, ExtremeLengths) {
  std::mt19937 random(3);
  auto sequence = [&](size_t n) {
    std::vector<uint32_t> words(n);
    for (uint32_t& word : words) word = static_cast<uint32_t>(random() % 50);
    return words;
  };
  EXPECT_EQ(edits({1000}, sequence(3000)), 3000);
  EXPECT_EQ(edits(sequence(3000), {1000}), 3000);
  int far = edits(sequence(20), sequence(2000));
  EXPECT_GE(far, 1980);
  EXPECT_LE(far, 2000);
  auto same = sequence(50'000);
  EXPECT_EQ(count_edits(same, same), 0);
}

}  // namespace
}  // namespace fovea
