#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/word_alignment.h"

namespace fovea {

// Returns the links with both sides exchanged, (target, source), sorted.
Links reversed(const Links& links);

// The counts for the alignment error rate (Och and Ney: A Systematic Comparison of Various
// Statistical Alignment Models, Computational Linguistics 29 (2003), section 5). A is the set of
// links found, S the set of sure gold links, P that of possible gold links. The counts of several
// pairs are added.
struct AlignmentCounts {
  int64_t links = 0;           // |A|
  int64_t sure = 0;            // |S|
  int64_t sure_found = 0;      // |A ∩ S|
  int64_t possible_found = 0;  // |A ∩ P|

  AlignmentCounts& operator+=(const AlignmentCounts& other);
  double precision() const;  // |A ∩ P| / |A|, from 0 to 1; 1 without links
  double recall() const;     // |A ∩ S| / |S|; 1 without sure links
  double error_rate() const;  // AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 if both are empty
};

// Counts the links of one pair. REQUIRES: `links` are sorted and have no duplicates.
AlignmentCounts count_links(const Links& links, const GoldLinks& gold);

// How the links of two directions are merged.
enum class Symmetrization {
  intersection,         // links of both directions
  union_,               // links of either direction
  grow_diag,            // the intersection, to which neighbouring links are added
  grow_diag_final,      // then also links of either direction between two unlinked words
  grow_diag_final_and,  // as in Moses: for growing, one unlinked word suffices
};

// Parses a name such as "grow-diag". Throws ExitCode::usage for an unknown name; the message lists
// the valid names.
Symmetrization symmetry_of(std::string_view name);

// Merges two sets of links (source, target). The sets and the result are sorted without duplicates.
// Note [Growing alignments] has the definitions.
Links symmetrize(Symmetrization method, const Links& forward, const Links& backward);

}  // namespace fovea
