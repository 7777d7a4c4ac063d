#include "decode/beam.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "text/vocabulary.h"

namespace fovea {

bool ranks_before(const Hypothesis& a, const Hypothesis& b) {
  return a.score != b.score ? a.score > b.score : a.words < b.words;
}

Beam::Beam(const BeamOptions& options) : options_(options) {
  nodes_.push_back({-1, options.start, 0});
  live_.push_back({0, 0});
}

double Beam::normalised(double log_prob, int64_t length) const {
  const auto counted = static_cast<double>(options_.context + length);
  return log_prob / std::pow(counted, options_.length_penalty);
}

// Sorts as many extensions as can be chosen to the front and removes the others.
void Beam::sort_extensions() {
  const auto most = options_.terms > 0 ? extensions_.size() : static_cast<size_t>(candidates());
  const auto kept = std::min(most, extensions_.size());
  std::ranges::partial_sort(extensions_, extensions_.begin() + static_cast<std::ptrdiff_t>(kept),
                            [](const Extension& a, const Extension& b) {
                              if (a.log_prob != b.log_prob) return a.log_prob > b.log_prob;
                              if (a.hypothesis != b.hypothesis) return a.hypothesis < b.hypothesis;
                              return a.word < b.word;  // pointers: the order of `candidates`
                            });
  extensions_.resize(kept);
}

// Note [Banks]
// Hypotheses that have not begun their terms are usually more probable than those that have, so
// that the latter would never be kept. Post and Vilar 2018 divide the beam into banks of
// hypotheses with equal progress. Here the progress is the number of terms that a hypothesis has
// begun or completed: with n terms there are n + 1 banks of k / (n + 1) places each, and the last
// banks have the remainder. The best candidates of all banks take places that a bank leaves. Only
// hypotheses with all terms may end, and near the length limit only the pieces of terms are
// possible (RequiredTerms::remaining), so each finished hypothesis has all terms.

// Marks the k extensions that take the places of the beam.
void Beam::choose() {
  const auto k = static_cast<size_t>(options_.size);
  const auto banks = static_cast<size_t>(options_.terms + 1);
  std::vector<size_t> places(banks, k / banks);
  for (size_t i = 0; i < k % banks; ++i) ++places[banks - 1 - i];
  size_t chosen = 0;
  for (Extension& e : extensions_) {
    size_t& left = places[static_cast<size_t>(e.word->begun)];
    if (left == 0) continue;
    --left;
    ++chosen;
    e.chosen = true;
  }
  for (Extension& e : extensions_) {
    if (chosen == k) break;
    if (!e.chosen) ++chosen;
    e.chosen = true;
  }
}

void Beam::keep(const Extension& e) {
  const auto node = static_cast<int32_t>(nodes_.size());
  nodes_.push_back({live_[e.hypothesis].node, e.word->word, static_cast<float>(e.word->log_prob)});
  if (e.word->word == kEos) {
    finished_.push_back({node, e.log_prob, normalised(e.log_prob, length_)});
  } else {
    next_.push_back({node, e.log_prob, e.word->terms});
    parents_.push_back(e.hypothesis);
  }
}

void Beam::advance(std::span<const std::vector<Candidate>> candidates) {
  extensions_.clear();
  for (size_t i = 0; i < live_.size(); ++i)
    for (const Candidate& c : candidates[i])
      extensions_.push_back({static_cast<int32_t>(i), &c, live_[i].log_prob + c.log_prob});
  sort_extensions();
  choose();

  const bool last = at_limit();
  ++length_;
  next_.clear();
  parents_.clear();
  for (const Extension& e : extensions_)
    if (e.chosen) keep(e);
  if (options_.rule == BeamRule::transformers) {
    for (const Extension& e : extensions_)
      if (!e.chosen && e.word->word != kEos && std::ssize(next_) < options_.size) keep(e);
  }
  std::swap(live_, next_);
  const bool stops = options_.rule == BeamRule::transformers
                         ? stops_by_rule()
                         : options_.early_stop && n_best_known();
  if (last && !stops) finish_live();
  if (last || stops) {
    live_.clear();
    parents_.clear();
  }
}

// Ends the live hypotheses at the length limit: </s> follows, but counts for nothing.
void Beam::finish_live() {
  for (const LiveHypothesis& live : live_) {
    finished_.push_back(
        {static_cast<int32_t>(nodes_.size()), live.log_prob, normalised(live.log_prob, length_)});
    nodes_.push_back({live.node, kEos, 0});
  }
}

// Note [Stop rules]
// With BeamRule::transformers the search considers the best 2k candidates of a step. Those with
// </s> among the first k are finished, and the first k others stay alive. The search may stop when
// k hypotheses have finished. EarlyStopping::yes is the rule of CTranslate2 (with a length penalty)
// and of fairseq. With `no`, Transformers compares the k-th best finished score with the best
// candidate of this step, as if it ended here; `never` uses the maximum length instead, which is
// the exact bound of Note [Early stop]. With k = 1 all of them are greedy search, which ends with
// the first </s>.
bool Beam::stops_by_rule() const {
  const auto k = static_cast<size_t>(options_.size);
  if (finished_.size() < k || extensions_.empty()) return false;
  if (k == 1 || options_.early_stopping == EarlyStopping::yes) return true;
  std::vector<double> scores;
  for (const FinishedHypothesis& h : finished_) scores.push_back(h.score);
  const auto worst = scores.begin() + static_cast<std::ptrdiff_t>(k) - 1;
  std::ranges::nth_element(scores, worst, std::greater());
  const bool longest =
      options_.early_stopping == EarlyStopping::never && options_.length_penalty > 0;
  return *worst >=
         normalised(extensions_.front().log_prob, longest ? options_.max_length : length_);
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
