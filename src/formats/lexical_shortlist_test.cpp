#include "formats/lexical_shortlist.h"

#include <gtest/gtest.h>

#include "support/damaged_files.h"

namespace fovea {
namespace {

using testing::DamagedFile;
using testing::file_of;
using testing::le;

LexicalShortlist small_list() { return {2, 3, {0, 0, 2, 5}, {7, 9, 1, 2, 3}}; }

void read_all(const FileBytes& file) {
  const LexicalShortlist list = read_shortlist(file);
  for (size_t i = 0; i < list.sources(); ++i) list.targets_of(i);
}

TEST(LexicalShortlist, ReadsWhatItWrote) {
  const std::string bytes = format_shortlist(small_list());
  EXPECT_EQ(bytes.size(), 48u + 4 * 8 + 5 * 4);
  const LexicalShortlist list = read_shortlist(file_of(bytes, "lex.bin"));
  EXPECT_EQ(list.frequent, 2u);
  EXPECT_EQ(list.best, 3u);
  EXPECT_EQ(list.sources(), 3u);
  EXPECT_TRUE(list.targets_of(0).empty());
  EXPECT_EQ(list.targets_of(1)[1], 9u);
  EXPECT_EQ(list.targets_of(2).size(), 3u);
}

// The checksum by hand: of one word w it is w + 0x9E3779B9.
TEST(LexicalShortlist, HasTheChecksumOfMarian) {
  uint64_t sum = 0;
  for (const uint64_t word : {0ull, 0ull, 1ull, 0ull, 0ull})
    sum ^= word + 0x9E3779B9 + (sum << 6) + (sum >> 2);
  EXPECT_EQ(format_shortlist({0, 0, {0}, {}}),
            le(uint64_t{0xF11A48D5013417F5}) + le(sum) + le<uint64_t>(0) + le<uint64_t>(0) +
                le<uint64_t>(1) + le<uint64_t>(0) + le<uint64_t>(0));
}

std::vector<DamagedFile> bad_files() {
  const std::string good = format_shortlist(small_list());
  std::vector<DamagedFile> all = {
      {"empty", "", "the magic number needs 8"},
      {"magic wrong", "12345678" + good.substr(8), "begin with 0xf11a48d5013417f5"},
      {"text", "the das 0.5\nthe die 0.25\n", "magic number"},
      {"bytes after the end", good + "x", "1 bytes after the end"},
      {"first offset 1", format_shortlist({2, 3, {1, 2}, {1, 2}}), "its offset is not 0"},
      {"no offsets", format_shortlist({2, 3, {}, {}}), "its offset is not 0"},
      {"offsets decrease", format_shortlist({2, 3, {0, 2, 1, 2}, {1, 2}}), "end before they begin"},
      {"offset beyond the list", format_shortlist({2, 3, {0, 3, 2}, {1, 2}}), "beyond the list"},
      {"offset 2^64 - 1", format_shortlist({2, 3, {0, ~uint64_t{0}}, {1}}), "beyond the list"},
      {"targets of no piece", format_shortlist({2, 3, {0, 1}, {1, 2}}), "targets of no source"},
      {"target twice", format_shortlist({2, 3, {0, 2}, {2, 2}}), "not increasing"},
      {"targets decrease", format_shortlist({2, 3, {0, 2}, {3, 2}}), "not increasing"},
  };
  for (const size_t field : {32, 40})
    for (const uint64_t value : {uint64_t{0}, uint64_t{3}, uint64_t{6}, uint64_t{1} << 32,
                                 uint64_t{1} << 61, uint64_t{1} << 62, ~uint64_t{0}}) {
      std::string bytes = good;
      bytes.replace(field, 8, le(value));
      all.push_back({"count at " + std::to_string(field) + " " + std::to_string(value), bytes, ""});
    }
  for (size_t at = 0; at < good.size();
       ++at) {  // each byte counts, except in half a word at the end
    if (at >= good.size() / 8 * 8) break;
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x40);
    all.push_back({"byte " + std::to_string(at), bytes, ""});
  }
  return all;
}

TEST(LexicalShortlist, RefusesEveryKindOfBadFile) {
  const std::vector<DamagedFile> all = bad_files();
  EXPECT_GE(all.size(), 80u);
  testing::expect_refused(all, "lex.bin", read_all);
}

TEST(LexicalShortlist, EveryTruncationIsRefused) {
  testing::expect_beginnings_refused(format_shortlist(small_list()), "lex.bin", read_all);
}

}  // namespace
}  // namespace fovea
