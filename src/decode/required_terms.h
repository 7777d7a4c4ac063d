#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace fovea {

// A term that a translation must have: alternative sequences of pieces, none of them empty.
using TermPieces = std::vector<std::vector<int32_t>>;

// The progress of a hypothesis: a node of RequiredTerms, and the set of terms that it has.
struct TermState {
  int32_t node = 0;
  uint64_t met = 0;
};

// The terms that the translation of one sentence must have, as an Aho-Corasick automaton over
// pieces. Immutable, so several threads can use it.
class RequiredTerms {
 public:
  static constexpr int64_t kMost = 63;

  // REQUIRES: at most kMost terms, each with an alternative.
  explicit RequiredTerms(std::span<const TermPieces> terms);

  int64_t size() const { return static_cast<int64_t>(shortest_.size()); }
  TermState after(TermState state, int32_t word) const;
  bool complete(TermState state) const { return state.met == all_; }
  // The number of terms that the hypothesis has, plus one if it ends with the beginning of another.
  int32_t begun(TermState state) const;
  // The minimum number of pieces that completes all terms. One of the continuations makes it
  // smaller by at least 1.
  int64_t remaining(TermState state) const;
  // The words that begin or continue a term that the hypothesis lacks, without repetition.
  std::vector<int32_t> continuations(TermState state) const;

 private:
  struct Goal {
    int32_t term;
    int64_t left;  // pieces from this node to the end of the term
  };
  struct Node {
    std::map<int32_t, int32_t> children = {};  // by word
    int32_t fail = 0;                          // the longest suffix that is another node
    uint64_t ends = 0;                         // terms that end here, in any suffix
    std::vector<Goal> goals = {};              // terms that continue from here
  };
  void add(int32_t term, std::span<const int32_t> pieces);
  void link();
  bool lacks(TermState state, int32_t term) const { return !(state.met >> term & 1); }
  bool leads_on(TermState state, const Node& node) const;

  std::vector<Node> nodes_{1};
  std::vector<int64_t> shortest_;  // pieces of the shortest alternative of each term
  uint64_t all_ = 0;
};

}  // namespace fovea
