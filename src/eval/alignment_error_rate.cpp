#include "eval/alignment_error_rate.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "base/check.h"

namespace fovea {
namespace {

int64_t in_both(const Links& a, const Links& b) {
  Links both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return std::ssize(both);
}

double ratio(int64_t part, int64_t whole, double otherwise) {
  return whole == 0 ? otherwise : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Links reversed(const Links& links) {
  Links result;
  for (const auto& [source, target] : links) result.emplace_back(target, source);
  std::sort(result.begin(), result.end());
  return result;
}

AlignmentCounts& AlignmentCounts::operator+=(const AlignmentCounts& other) {
  links += other.links;
  sure += other.sure;
  sure_found += other.sure_found;
  possible_found += other.possible_found;
  return *this;
}

double AlignmentCounts::precision() const { return ratio(possible_found, links, 1); }
double AlignmentCounts::recall() const { return ratio(sure_found, sure, 1); }
double AlignmentCounts::error_rate() const {
  return 1 - ratio(sure_found + possible_found, links + sure, 1);
}

AlignmentCounts count_links(const Links& links, const GoldLinks& gold) {
  return {std::ssize(links), std::ssize(gold.sure), in_both(links, gold.sure),
          in_both(links, gold.possible)};
}

// Note [Growing alignments]
// A link joins a source word and a target word; the union has the links of both directions.
// grow-diag starts with the intersection. It visits the links by source word, then by target word,
// including links that it has just added. A link has eight neighbours. grow-diag adds a neighbour
// if the union contains it and neither of its two words has a link. It repeats this until it adds
// no link. `final` then visits the links of the forward direction, then of the backward direction.
// It adds each link whose two words have no link.
//
// A horizontal or vertical neighbour of a link shares a word with that link. So only the four
// diagonal neighbours can be added. If two of these share a word, the first of them is added;
// kNeighbours gives the order. This order reproduces the published symmetrisations of the
// English-French Hansards exactly.
//
// Other programs differ. In Moses, grow-diag adds a neighbour even if only one of its words has no
// link. The `final` of Moses requires one word without a link, and its "final-and" requires two.
// Our grow_diag_final_and is the grow-diag-final-and of Moses.
namespace {

constexpr Link kNeighbours[] = {{-1, 0}, {0, -1},  {1, 0},  {0, 1},
                                {-1, 1}, {-1, -1}, {1, -1}, {1, 1}};

enum class Free { one, both };  // how many words of a new link must have no link

class GrowingAlignment {
 public:
  explicit GrowingAlignment(const Links& links) {
    for (const Link& link : links) add(link);
  }

  bool add_if_free(const Link& link, Free wanted) {
    const bool source = !sources_.contains(link.first), target = !targets_.contains(link.second);
    if (wanted == Free::both ? !(source && target) : !(source || target)) return false;
    return add(link);
  }

  void grow(const Links& candidates, Free wanted) {
    for (bool added = true; added;) {
      added = false;
      // insert() does not invalidate the iterators of a set. So this loop also visits those links
      // that it adds after the current link.
      for (const auto& [source, target] : links_)
        for (const auto& [down, right] : kNeighbours) {
          const Link near{source + down, target + right};
          if (std::binary_search(candidates.begin(), candidates.end(), near))
            added |= add_if_free(near, wanted);
        }
    }
  }

  Links links() const { return {links_.begin(), links_.end()}; }

 private:
  bool add(const Link& link) {
    sources_.insert(link.first);
    targets_.insert(link.second);
    return links_.insert(link).second;
  }

  std::set<Link> links_;
  std::set<int> sources_, targets_;
};

}  // namespace

Symmetrization symmetry_of(std::string_view name) {
  if (name == "intersection") return Symmetrization::intersection;
  if (name == "union") return Symmetrization::union_;
  if (name == "grow-diag") return Symmetrization::grow_diag;
  if (name == "grow-diag-final") return Symmetrization::grow_diag_final;
  if (name == "grow-diag-final-and") return Symmetrization::grow_diag_final_and;
  fail(ExitCode::usage, "'", name, "' is no way to join alignments; choose intersection, union, ",
       "grow-diag, grow-diag-final or grow-diag-final-and");
}

Links symmetrize(Symmetrization method, const Links& forward, const Links& backward) {
  Links both, either;
  std::set_intersection(forward.begin(), forward.end(), backward.begin(), backward.end(),
                        std::back_inserter(both));
  std::set_union(forward.begin(), forward.end(), backward.begin(), backward.end(),
                 std::back_inserter(either));
  if (method == Symmetrization::intersection) return both;
  if (method == Symmetrization::union_) return either;
  GrowingAlignment grown(both);
  grown.grow(either, method == Symmetrization::grow_diag_final_and ? Free::one : Free::both);
  if (method == Symmetrization::grow_diag) return grown.links();
  for (const Links& direction : {forward, backward})
    for (const Link& link : direction) grown.add_if_free(link, Free::both);
  return grown.links();
}

}  // namespace fovea
