#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace fovea {

// Whether FOVEA_ONLY_RUN is set. Then tests look for memory errors under sanitizers, which are
// slow. The results have been checked before, so less work suffices.
inline bool only_runs() { return std::getenv("FOVEA_ONLY_RUN") != nullptr; }

// The number of repeats: `all`, or a tenth of it if only_runs().
inline int64_t repeats(int64_t all) { return only_runs() ? std::max<int64_t>(1, all / 10) : all; }

}  // namespace fovea
