#include "decode/word_selection.h"

#include <algorithm>
#include <cmath>

#include "text/vocabulary.h"

namespace fovea {
namespace {

bool has(std::span<const int32_t> words, int32_t word) {
  return std::ranges::find(words, word) != words.end();
}

// Models in the style of Transformers name all words that they never generate.
std::vector<int32_t> banned_words(const SearchOptions& options) {
  std::vector<int32_t> banned;
  if (options.rule == BeamRule::fovea) {
    banned = {kPad, kBos};
    if (!options.allow_unknown) banned.push_back(kUnk);
  }
  for (const int32_t word : options.suppress)
    if (!has(banned, word)) banned.push_back(word);
  return banned;
}

}  // namespace

WordSelection::WordSelection(const SearchOptions& options, const SentenceFrame& frame)
    : options_(options), banned_(banned_words(options)), context_{frame.start} {
  context_.insert(context_.end(), frame.target_prefix.begin(), frame.target_prefix.end());
}

bool WordSelection::by_hypothesis(const RequiredTerms* terms) const {
  return options_.min_length > 0 || options_.no_repeat_ngram > 0 || terms;
}

// The words that would repeat n pieces of the hypothesis and of its context.
std::vector<int32_t> WordSelection::repeated(const LiveRow& live) const {
  const auto n = static_cast<size_t>(options_.no_repeat_ngram);
  std::vector<int32_t> all = context_, words = live.beam.words(live.i);
  all.insert(all.end(), words.begin(), words.end());
  std::vector<int32_t> found;
  const std::span<const int32_t> pieces = all;
  for (size_t i = 0; i + n <= pieces.size(); ++i)
    if (std::ranges::equal(pieces.subspan(i, n - 1), pieces.last(n - 1)) &&
        !has(found, pieces[i + n - 1]))
      found.push_back(pieces[i + n - 1]);
  return found;
}

std::vector<int32_t> WordSelection::removed(const LiveRow& live) const {
  if (!by_hypothesis(live.terms)) return {};
  std::vector<int32_t> words;
  if (options_.no_repeat_ngram > 0) words = repeated(live);
  const int64_t length = std::ssize(context_) - 1 + live.beam.length() + 1;  // with </s>
  const bool early = length < options_.min_length;
  const bool lacking = live.terms && !live.terms->complete(live.beam.terms(live.i));
  if ((early || lacking) && !has(words, kEos)) words.push_back(kEos);
  return words;
}

// log(1 − Σ p) over the words that are not possible.
double WordSelection::removed_log_mass(const StepScores& scores, int64_t row,
                                       std::span<const int32_t> removed) const {
  constexpr double kMost = 1 - 1e-12;
  double mass = 0;
  for (const int32_t word : banned_) mass += std::exp(scores.log_prob_of(row, word));
  for (const int32_t word : removed)
    if (!has(banned_, word)) mass += std::exp(scores.log_prob_of(row, word));
  return std::log1p(-std::min(mass, kMost));
}

Candidate WordSelection::end(const StepScores& scores, int64_t row, const LiveRow& live) const {
  const bool free = options_.rule == BeamRule::transformers;  // it is the only possible word
  return {kEos, free ? 0 : std::min(0.0, scores.end_log_prob(row)), live.beam.terms(live.i),
          live.terms ? static_cast<int32_t>(live.terms->size()) : 0};
}

Candidate WordSelection::forced(const StepScores& scores, int64_t row, const LiveRow& live,
                                int32_t word) const {
  const double log_prob = std::clamp(scores.log_prob_of(row, word), kImpossible, 0.0);
  Candidate candidate{word, log_prob};
  if (!live.terms) return candidate;
  candidate.terms = live.terms->after(live.beam.terms(live.i), word);
  candidate.begun = live.terms->begun(candidate.terms);
  return candidate;
}

// Removes words after which the terms would not fit into the maximum length. Adds the words that
// the terms need.
void WordSelection::add_terms(const StepScores& scores, int64_t row, const LiveRow& live,
                              std::vector<Candidate>& result) const {
  const TermState state = live.beam.terms(live.i);
  for (Candidate& c : result)
    if (c.word != kEos) {
      c.terms = live.terms->after(state, c.word);
      c.begun = live.terms->begun(c.terms);
    } else {
      c.terms = state;
      c.begun = static_cast<int32_t>(live.terms->size());
    }
  for (const int32_t word : live.terms->continuations(state))
    if (std::ranges::find(result, word, &Candidate::word) == result.end())
      result.push_back(forced(scores, row, live, word));
  const int64_t left =
      std::max<int64_t>(0, live.beam.options().max_length - live.beam.length() - 2);
  std::erase_if(result, [&](const Candidate& c) { return live.terms->remaining(c.terms) > left; });
  std::ranges::sort(result, [](const Candidate& a, const Candidate& b) {
    return a.log_prob != b.log_prob ? a.log_prob > b.log_prob : a.word < b.word;
  });
}

void WordSelection::rank(const StepScores& scores, int64_t row, const LiveRow& live,
                         std::span<const int32_t> removed, std::vector<Candidate>& result) const {
  result.clear();
  if (live.beam.must_end()) {
    result.push_back(end(scores, row, live));
    return;
  }
  const double mass = options_.renormalize ? removed_log_mass(scores, row, removed) : 0;
  for (int64_t j = 0; j < scores.k() && std::ssize(result) < live.beam.candidates(); ++j) {
    const int32_t word = scores.word(row, j);
    const double log_prob = std::min(0.0, scores.log_prob(row, j) - mass);
    const bool possible = word >= 0 && log_prob > kImpossible;
    if (possible && !has(banned_, word) && !has(removed, word)) result.push_back({word, log_prob});
  }
  if (live.terms) add_terms(scores, row, live, result);
  if (result.empty()) result.push_back(end(scores, row, live));
}

Candidate WordSelection::draw(const StepScores& scores, int64_t row, const RandomDraw& which,
                              std::span<const int32_t> removed) {
  if (!sampler_) sampler_.emplace(*options_.sampling);
  std::vector<int32_t> banned = banned_;
  banned.insert(banned.end(), removed.begin(), removed.end());
  return sampler_->draw(scores.all(row), scores.log_sum(row), banned, which);
}

}  // namespace fovea
