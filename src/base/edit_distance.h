#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/ascii.h"

namespace fovea {

// The Levenshtein distance with swaps of neighbours: the minimum number of edits that turn a into
// b. An edit changes, inserts or omits one letter or swaps two neighbouring letters. If the
// distance is at least `limit`, returns `limit`.
template <class Text>
std::size_t edit_distance(const Text& a, const Text& b,
                          std::size_t limit = std::numeric_limits<std::size_t>::max()) {
  if (std::max(a.size(), b.size()) - std::min(a.size(), b.size()) >= limit) return limit;
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    const std::size_t least = std::min(std::ranges::min(row), std::ranges::min(last));
    if (least >= limit) return limit;  // later rows depend on these two rows
    std::swap(before, last);
    std::swap(last, row);
  }
  return std::min(last[b.size()], limit);
}

// If a name is this number of edits away from a typed word of `letters` letters, the user hardly
// meant that name.
inline std::size_t too_many_edits(std::size_t letters) {
  return std::max<std::size_t>(2, letters / 3) + 1;
}

// The name that the user probably meant by `typed`: the name with the smallest edit_distance(),
// ignoring case. If every name is `too_many` or more edits away, returns "".
inline std::string nearest_name(const std::string& typed, const std::vector<std::string>& names,
                                std::size_t too_many) {
  std::string best;
  std::size_t fewest = too_many;
  if (typed.size() > 64) return best;
  for (const std::string& name : names) {
    const std::size_t n = edit_distance(lower_ascii(typed), lower_ascii(name), fewest);
    if (n >= fewest) continue;
    fewest = n;
    best = name;
  }
  return best;
}
inline std::string nearest_name(const std::string& typed, const std::vector<std::string>& names) {
  return nearest_name(typed, names, too_many_edits(typed.size()));
}

}  // namespace fovea
