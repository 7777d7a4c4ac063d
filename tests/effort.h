#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace fovea {

// FOVEA_ONLY_RUN is set where tests look for errors of memory, not of results, which they have seen
// to be right before: with sanitizers, under which everything takes long.
inline bool only_runs() { return std::getenv("FOVEA_ONLY_RUN") != nullptr; }

// So many repeats, or the tenth part of them.
inline int64_t repeats(int64_t all) { return only_runs() ? std::max<int64_t>(1, all / 10) : all; }

}  // namespace fovea
