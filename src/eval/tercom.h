#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea {

// The edits, shifts included, that turn the hypothesis into the reference, words given as
// numbers. Shifts are searched greedily under tercom's limits (Snover, Dorr, Schwartz, Micciulla,
// Makhoul: A Study of Translation Edit Rate with Targeted Human Annotation, AMTA 2006).
// An empty reference costs one edit per word.
int count_edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference);

}  // namespace fovea
