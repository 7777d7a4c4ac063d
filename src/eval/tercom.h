#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea {

// Counts the edits, including shifts of runs of words, that turn the hypothesis into the reference.
// Words are given as ids. The search for shifts is greedy and has tercom's limits (Snover, Dorr,
// Schwartz, Micciulla, Makhoul: A Study of Translation Edit Rate with Targeted Human Annotation,
// AMTA 2006). If the reference is empty, each word counts as one edit.
int count_edits(std::span<const uint32_t> hypothesis, std::span<const uint32_t> reference);

}  // namespace fovea
