#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/word_alignment.h"

namespace fovea {

// Returns each link (source, target) as (target, source), sorted.
Links reversed(const Links& links);

// The counts for the alignment error rate (Och and Ney: A Systematic Comparison of Various
// Statistical Alignment Models, Computational Linguistics 29 (2003), section 5). A is the set of
// links to evaluate, S the set of sure gold links, and P the set of possible gold links. The counts
// of several sentence pairs are added.
struct AlignmentCounts {
  int64_t links = 0;           // |A|
  int64_t sure = 0;            // |S|
  int64_t sure_found = 0;      // |A ∩ S|
  int64_t possible_found = 0;  // |A ∩ P|

  AlignmentCounts& operator+=(const AlignmentCounts& other);
  double precision() const;  // |A ∩ P| / |A|, from 0 to 1; 1 if there are no links
  double recall() const;     // |A ∩ S| / |S|; 1 if there are no sure links
  double error_rate() const;  // AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 if both are empty
};

// Counts the links of one sentence pair. REQUIRES: `links` are sorted and have no duplicates.
AlignmentCounts count_links(const Links& links, const GoldLinks& gold);

// How the links of both directions are merged.
enum class Symmetrization {
  intersection,         // links that both directions have
  union_,               // links that at least one direction has
  grow_diag,            // the intersection, to which neighbouring links are added
  grow_diag_final,      // also links of either direction whose words have no link
  grow_diag_final_and,  // as in Moses: to grow, one word without a link suffices
};

// Parses a name such as "grow-diag". For an unknown name throws ExitCode::usage with the list of
// the valid names.
Symmetrization symmetry_of(std::string_view name);

// Merges two sets of links (source, target). The sets and the result are sorted and have no
// duplicates. Note [Growing alignments] defines the methods.
Links symmetrize(Symmetrization method, const Links& forward, const Links& backward);

}  // namespace fovea
