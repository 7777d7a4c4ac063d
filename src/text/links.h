#pragma once

#include <utility>
#include <vector>

namespace fovea {

// (source word, target word), both counted from 0.
using Link = std::pair<int, int>;
using Links = std::vector<Link>;

}  // namespace fovea
