#include "cli/suggestion.h"

#include <algorithm>
#include <numeric>

namespace fovea {
namespace {

size_t edits(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string nearest_name(const std::string& typed, const std::vector<std::string>& names) {
  std::string best;
  size_t fewest = std::max<size_t>(2, typed.size() / 3) + 1;
  if (typed.size() > 64) return best;
  for (const std::string& name : names) {
    const size_t n = edits(typed, name);
    if (n >= fewest) continue;
    fewest = n;
    best = name;
  }
  return best;
}

}  // namespace fovea
