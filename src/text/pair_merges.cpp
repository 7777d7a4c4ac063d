#include "text/pair_merges.h"

#include <functional>
#include <queue>

namespace fovea {
namespace {

uint64_t key_of(int32_t left, int32_t right) {
  return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
}

}  // namespace

// The symbols of a word as a list, and the merges that are possible.
class PairMerges::Word {
 public:
  Word(const PairMerges& rules, std::vector<Node> nodes) : rules_(rules), nodes_(std::move(nodes)) {
    for (size_t i = 0; i + 1 < nodes_.size(); ++i) propose(static_cast<int32_t>(i));
  }

  bool done() const { return candidates_.empty(); }

  // All candidates of the first merge, or only the leftmost of them.
  std::vector<Candidate> next() {
    std::vector<Candidate> round;
    do {
      round.push_back(candidates_.top());
      candidates_.pop();
    } while (rules_.order_ == MergeOrder::rounds && !candidates_.empty() &&
             candidates_.top().rank == round.front().rank);
    return round;
  }

  // Joins a pair unless one of its symbols was joined since the proposal.
  void merge(const Candidate& candidate) {
    Node& left = nodes_[static_cast<size_t>(candidate.at)];
    if (left.after < 0) return;
    const Node& right = nodes_[static_cast<size_t>(left.after)];
    const Result* result = rules_.find(left.symbol, right.symbol);
    if (!result || result->symbol != candidate.symbol) return;
    if (rules_.order_ == MergeOrder::rounds && result->rank != candidate.rank) return;
    left.symbol = result->symbol;
    const int32_t removed = left.after;
    left.after = right.after;
    nodes_[static_cast<size_t>(removed)].after = kRemoved;
    if (left.after >= 0) nodes_[static_cast<size_t>(left.after)].before = candidate.at;
    if (left.before >= 0) propose(left.before);
    propose(candidate.at);
  }

  // The ends of the symbols, given the ends of the first ones.
  std::vector<size_t> ends(const std::vector<size_t>& first) const {
    std::vector<size_t> result;
    for (int32_t at = nodes_.empty() ? -1 : 0; at >= 0;
         at = nodes_[static_cast<size_t>(at)].after) {
      const int32_t after = nodes_[static_cast<size_t>(at)].after;
      result.push_back(after < 0 ? first.back() : first[static_cast<size_t>(after) - 1]);
    }
    return result;
  }

 private:
  static constexpr int32_t kRemoved = -2;

  void propose(int32_t at) {
    const Node& left = nodes_[static_cast<size_t>(at)];
    if (left.after < 0) return;
    const Result* result = rules_.find(left.symbol, nodes_[static_cast<size_t>(left.after)].symbol);
    if (result) candidates_.push({result->rank, at, result->symbol});
  }

  const PairMerges& rules_;
  std::vector<Node> nodes_;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates_;
};

PairMerges::PairMerges(std::vector<Merge> merges, MergeOrder order)
    : merges_(std::move(merges)), order_(order) {
  for (size_t i = 0; i < merges_.size(); ++i) {
    const Merge& merge = merges_[i];
    const uint64_t key = key_of(intern(merge.left), intern(merge.right));
    const Result result{static_cast<int32_t>(i), intern(merge.left + merge.right)};
    if (order == MergeOrder::rounds) {
      results_.emplace(key, result);
    } else {
      results_.insert_or_assign(key, result);
    }
  }
}

int32_t PairMerges::intern(const std::string& symbol) {
  return symbols_.emplace(symbol, static_cast<int32_t>(symbols_.size())).first->second;
}

const PairMerges::Result* PairMerges::find(int32_t left, int32_t right) const {
  if (left < 0 || right < 0) return nullptr;
  const auto found = results_.find(key_of(left, right));
  return found == results_.end() ? nullptr : &found->second;
}

std::vector<size_t> PairMerges::apply(std::string_view word, std::vector<size_t> ends) const {
  std::vector<Node> nodes;
  size_t begin = 0;
  for (const size_t end : ends) {
    const auto found = symbols_.find(word.substr(begin, end - begin));
    const auto at = static_cast<int32_t>(nodes.size());
    nodes.push_back({found == symbols_.end() ? -1 : found->second, at - 1, at + 1});
    begin = end;
  }
  if (nodes.empty()) return ends;
  nodes.back().after = -1;
  Word list(*this, std::move(nodes));
  while (!list.done())
    for (const Candidate& candidate : list.next()) list.merge(candidate);
  return list.ends(ends);
}

}  // namespace fovea
