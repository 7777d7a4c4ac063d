#include "decode/beam.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "text/vocabulary.h"

namespace fovea {

bool ranks_before(const Hypothesis& a, const Hypothesis& b) {
  return a.score != b.score ? a.score > b.score : a.words < b.words;
}

Beam::Beam(const BeamOptions& options) : options_(options) {
  nodes_.push_back({-1, kBos, 0});
  live_.push_back({0, 0});
}

double Beam::normalised(double log_prob, int64_t length) const {
  return log_prob / std::pow(static_cast<double>(length), options_.length_penalty);
}

void Beam::advance(std::span<const std::vector<Candidate>> candidates) {
  extensions_.clear();
  for (size_t i = 0; i < live_.size(); ++i)
    for (const Candidate& c : candidates[i])
      extensions_.push_back({static_cast<int32_t>(i), &c, live_[i].log_prob + c.log_prob});
  const auto kept = std::min(static_cast<size_t>(options_.size), extensions_.size());
  std::ranges::partial_sort(extensions_, extensions_.begin() + static_cast<std::ptrdiff_t>(kept),
                            [](const Extension& a, const Extension& b) {
                              if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
                              if (a.hypothesis != b.hypothesis) return a.hypothesis < b.hypothesis;
                              return a.word < b.word;  // pointers: the order of `candidates`
                            });
  extensions_.resize(kept);

  ++length_;
  next_.clear();
  parents_.clear();
  for (const Extension& e : extensions_) {
    const auto node = static_cast<int32_t>(nodes_.size());
    nodes_.push_back(
        {live_[e.hypothesis].node, e.word->word, static_cast<float>(e.word->log_prob)});
    if (e.word->word == kEos) {
      finished_.push_back({node, e.log_prob, normalised(e.log_prob, length_)});
    } else {
      next_.push_back({node, e.log_prob});
      parents_.push_back(e.hypothesis);
    }
  }
  std::swap(live_, next_);
  if (options_.early_stop && n_best_known()) {
    live_.clear();
    parents_.clear();
  }
}

// Note [Early stop]
// A live hypothesis has `length` words and the log-probability s ≤ 0. Later it will finish with l
// words, length < l ≤ max_length, and a log-probability s' ≤ s. Its score will be s' / l^α.
// If α ≥ 0, then l^α ≤ max_length^α, and s / max_length^α is an upper bound of the score:
//   s' / l^α ≤ s / l^α ≤ s / max_length^α.
// If α < 0, the upper bound is s / (length + 1)^α for the same reason. If n finished hypotheses
// have scores strictly above the bounds of all live hypotheses, the n best are known: further steps
// would only add hypotheses that rank behind them. Live hypotheses are sorted by s, so the first
// has the largest bound.
bool Beam::n_best_known() const {
  const auto n = static_cast<size_t>(options_.n_best);
  if (live_.empty() || finished_.size() < n) return false;
  const int64_t length = options_.length_penalty >= 0 ? options_.max_length : length_ + 1;
  const double bound = normalised(live_.front().log_prob, length);
  const auto above = std::ranges::count_if(
      finished_, [&](const FinishedHypothesis& e) { return e.score > bound; });
  return static_cast<size_t>(above) >= n;
}

std::vector<int32_t> Beam::words_to(int32_t node) const {
  std::vector<int32_t> words;
  for (; node > 0; node = nodes_[node].parent) words.push_back(nodes_[node].word);
  std::ranges::reverse(words);
  return words;
}

std::vector<int32_t> Beam::common_prefix() const {
  std::vector<int32_t> possible;
  for (const LiveHypothesis& live : live_) possible.push_back(live.node);
  double best = -std::numeric_limits<double>::infinity();
  for (const FinishedHypothesis& h : finished_) best = std::max(best, h.score);
  for (const FinishedHypothesis& h : finished_)
    if (h.score == best) possible.push_back(h.node);
  if (possible.empty()) return {};
  std::vector<int32_t> common = words_to(possible.front());
  for (const int32_t node : std::span(possible).subspan(1))
    common.erase(std::ranges::mismatch(common, words_to(node)).in1, common.end());
  return common;
}

Hypothesis Beam::trace(const FinishedHypothesis& finished) const {
  Hypothesis h{.words = words_to(finished.node), .log_probs = {}};
  for (int32_t node = finished.node; node > 0; node = nodes_[node].parent)
    h.log_probs.push_back(nodes_[node].log_prob);
  std::ranges::reverse(h.log_probs);
  h.log_prob = finished.log_prob;
  h.score = finished.score;
  return h;
}

std::vector<Hypothesis> Beam::best(int64_t n) const {
  std::vector<Hypothesis> all;
  for (const FinishedHypothesis& h : finished_) all.push_back(trace(h));
  std::ranges::sort(all, ranks_before);
  if (static_cast<int64_t>(all.size()) > n) all.resize(static_cast<size_t>(n));
  return all;
}

}  // namespace fovea
