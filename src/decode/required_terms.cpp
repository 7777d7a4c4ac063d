#include "decode/required_terms.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <deque>

namespace fovea {

RequiredTerms::RequiredTerms(std::span<const TermPieces> terms) {
  assert(std::ssize(terms) <= kMost);
  for (const TermPieces& alternatives : terms) {
    const auto term = static_cast<int32_t>(shortest_.size());
    all_ |= uint64_t{1} << term;
    shortest_.push_back(std::ssize(alternatives.front()));
    for (const std::vector<int32_t>& pieces : alternatives) {
      shortest_.back() = std::min(shortest_.back(), std::ssize(pieces));
      add(term, pieces);
    }
  }
  link();
}

void RequiredTerms::add(int32_t term, std::span<const int32_t> pieces) {
  int32_t node = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [at, added] =
        nodes_[node].children.try_emplace(pieces[i], static_cast<int32_t>(nodes_.size()));
    node = at->second;
    if (added) nodes_.emplace_back();
    const int64_t left = std::ssize(pieces) - static_cast<int64_t>(i) - 1;
    if (left > 0) nodes_[node].goals.push_back({term, left});
  }
  nodes_[node].ends |= uint64_t{1} << term;
}

// Sets the fail links in the order of depth (Aho and Corasick 1975).
void RequiredTerms::link() {
  std::deque<int32_t> open{0};
  for (; !open.empty(); open.pop_front()) {
    const int32_t parent = open.front();
    for (const auto& [word, child] : nodes_[parent].children) {
      if (parent != 0) nodes_[child].fail = after({nodes_[parent].fail, 0}, word).node;
      nodes_[child].ends |= nodes_[nodes_[child].fail].ends;
      open.push_back(child);
    }
  }
}

TermState RequiredTerms::after(TermState state, int32_t word) const {
  for (int32_t node = state.node;; node = nodes_[node].fail) {
    const auto found = nodes_[node].children.find(word);
    if (found != nodes_[node].children.end())
      return {found->second, state.met | nodes_[found->second].ends};
    if (node == 0) return {0, state.met};
  }
}

bool RequiredTerms::leads_on(TermState state, const Node& node) const {
  return std::ranges::any_of(node.goals, [&](const Goal& goal) { return lacks(state, goal.term); });
}

int32_t RequiredTerms::begun(TermState state) const {
  const int32_t met = std::popcount(state.met);
  for (int32_t node = state.node; node != 0; node = nodes_[node].fail)
    if (leads_on(state, nodes_[node])) return met + 1;
  return met;
}

int64_t RequiredTerms::remaining(TermState state) const {
  int64_t pieces = 0, saved = 0;
  for (int32_t term = 0; term < size(); ++term)
    if (lacks(state, term)) pieces += shortest_[term];
  for (int32_t node = state.node; node != 0; node = nodes_[node].fail)
    for (const Goal& goal : nodes_[node].goals)
      if (lacks(state, goal.term)) saved = std::max(saved, shortest_[goal.term] - goal.left);
  return pieces - saved;
}

std::vector<int32_t> RequiredTerms::continuations(TermState state) const {
  std::vector<int32_t> words;
  for (int32_t node = state.node;; node = nodes_[node].fail) {
    for (const auto& [word, child] : nodes_[node].children) {
      const bool ends = (nodes_[child].ends & ~state.met) != 0;
      if (ends || leads_on(state, nodes_[child])) words.push_back(word);
    }
    if (node == 0) break;
  }
  std::ranges::sort(words);
  words.erase(std::unique(words.begin(), words.end()), words.end());
  return words;
}

}  // namespace fovea
