#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lines.h"

namespace fovea {

// A link (source word, target word), both counted from 0.
using Link = std::pair<int, int>;
using Links = std::vector<Link>;

// The manual alignment of a sentence pair: sure links and possible links. Both lists are sorted and
// without duplicates; every sure link is also possible.
struct GoldLinks {
  Links sure = {}, possible = {};
};

// The number of the first word of a sentence in an alignment file.
enum class CountedFrom { zero = 0, one = 1 };

// Parses a line of the Pharaoh format: links source-target, as in "0-0 1-2 2-1". Ignores a
// probability after a link, as in "0-0:0.731". Returns sorted links without duplicates. Throws
// ExitCode::data if the line has other text; the message begins with `where`.
Links parse_pharaoh(std::string_view line, const std::string& where,
                    CountedFrom from = CountedFrom::zero);

// Parses a line of the Talp format: "1-1" is a sure link, "1p2" a possible one.
GoldLinks parse_talp(std::string_view line, const std::string& where,
                     CountedFrom from = CountedFrom::one);

// Reads all lines of a file (also .gz, "-" for standard input). Throws ExitCode::data with file and
// line.
std::vector<Links> read_pharaoh(const std::string& path, CountedFrom from = CountedFrom::zero);
std::vector<GoldLinks> read_talp(const std::string& path, CountedFrom from = CountedFrom::one);

// Reads the next line of an open Pharaoh file that counts from 0; returns false at its end.
// REQUIRES: the reader has the line limit kLongestLinks (bytes).
inline constexpr size_t kLongestLinks = size_t{1} << 24;
bool next_pharaoh(LineReader& reader, Links& links);

}  // namespace fovea
