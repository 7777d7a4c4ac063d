#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lines.h"

namespace fovea {

// (source word, target word), both counted from 0.
using Link = std::pair<int, int>;
using Links = std::vector<Link>;

// What people say of one sentence pair: links that must be there and links that may be. Both are
// sorted without repeats, and the sure ones are possible too.
struct GoldLinks {
  Links sure = {}, possible = {};
};

// Where the first word of a sentence is counted as 0 or as 1.
enum class CountedFrom { zero = 0, one = 1 };

// A line of Pharaoh's format, "0-0 1-2 2-1": source-target. A probability behind a link, as in
// "0-0:0.731", is read over. The links are sorted, without repeats. Exit::data beginning with
// `where` for anything else.
Links parse_pharaoh(std::string_view line, const std::string& where,
                    CountedFrom from = CountedFrom::zero);

// A line of the Talp format: "1-1" is a sure link, "1p2" a possible one.
GoldLinks parse_talp(std::string_view line, const std::string& where,
                     CountedFrom from = CountedFrom::one);

// All lines of a file (.gz, "-" for standard input). Exit::data names file and line.
std::vector<Links> read_pharaoh(const std::string& path, CountedFrom from = CountedFrom::zero);
std::vector<GoldLinks> read_talp(const std::string& path, CountedFrom from = CountedFrom::one);

// The next line of an open Pharaoh file that counts from 0; false at its end.
// REQUIRES: the reader was made with the limit kLongestLinks.
inline constexpr size_t kLongestLinks = size_t{1} << 24;
bool next_pharaoh(LineReader& reader, Links& links);

}  // namespace fovea
