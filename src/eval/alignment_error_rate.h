#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/word_alignment.h"

namespace fovea {

// Links turned round: (target, source), sorted.
Links reversed(const Links& links);

// Och and Ney: A Systematic Comparison of Various Statistical Alignment Models, Computational
// Linguistics 29 (2003), section 5. Counts of many pairs add up.
struct AlignmentCounts {
  int64_t links = 0;           // |A|
  int64_t sure = 0;            // |S|
  int64_t sure_found = 0;      // |A ∩ S|
  int64_t possible_found = 0;  // |A ∩ P|

  AlignmentCounts& operator+=(const AlignmentCounts& other);
  double precision() const;  // |A ∩ P| / |A|, from 0 to 1; 1 where there is no link
  double recall() const;     // |A ∩ S| / |S|; 1 where nothing had to be found
  double error_rate() const;  // AER = 1 − (|A ∩ S| + |A ∩ P|) / (|A| + |S|); 0 where both are empty
};

// REQUIRES: links are sorted without repeats.
AlignmentCounts count_links(const Links& links, const GoldLinks& gold);

// How the links of two directions become one set.
enum class Symmetrization {
  intersection,         // what both say
  union_,               // what one of them says
  grow_diag,            // the intersection, and step by step its neighbours
  grow_diag_final,      // then, of each direction, what joins two free words
  grow_diag_final_and,  // as Moses has it: growing needs only one free word
};

// "grow-diag" and so on. ExitCode::usage for an unknown name, with the names there are.
Symmetrization symmetry_of(std::string_view name);

// Both sets are (source, target), sorted without repeats; so is the result. See
// Note [Growing alignments] for the definitions.
Links symmetrize(Symmetrization method, const Links& forward, const Links& backward);

}  // namespace fovea
