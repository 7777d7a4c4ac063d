#include "cli/suggestion.h"

#include "base/edit_distance.h"

namespace fovea {
std::string nearest_name(const std::string& typed, const std::vector<std::string>& names) {
  std::string best;
  size_t fewest = too_many_edits(typed.size());
  if (typed.size() > 64) return best;
  for (const std::string& name : names) {
    const size_t n = edit_distance(typed, name, fewest);
    if (n >= fewest) continue;
    fewest = n;
    best = name;
  }
  return best;
}

}  // namespace fovea
