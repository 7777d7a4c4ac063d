#pragma once

#include <optional>
#include <span>
#include <vector>

#include "decode/beam.h"
#include "decode/search.h"
#include "decode/step_scores.h"

namespace fovea {

// One live hypothesis of a beam.
struct LiveRow {
  const Beam& beam;
  int64_t i = 0;                         // its number in the beam
  const RequiredTerms* terms = nullptr;  // of the sentence, if any
};

// The selection of the possible next words of a hypothesis by the options of a search. `options`
// must outlive it.
class WordSelection {
 public:
  WordSelection(const SearchOptions& options, const SentenceFrame& frame);

  const std::vector<int32_t>& banned() const { return banned_; }
  // Whether the possible words depend on the words of a hypothesis. If not, removed() is empty.
  bool by_hypothesis(const RequiredTerms* terms) const;
  // The words that this hypothesis cannot have next, besides banned(), without repetition.
  std::vector<int32_t> removed(const LiveRow& live) const;

  // Sets `result` to the candidates of a row: the best ones that are neither banned nor `removed`,
  // and the pieces that begin or continue required terms.
  void rank(const StepScores& scores, int64_t row, const LiveRow& live,
            std::span<const int32_t> removed, std::vector<Candidate>& result) const;
  // The candidate `word`, even if it is improbable.
  Candidate forced(const StepScores& scores, int64_t row, const LiveRow& live, int32_t word) const;
  // A random word.
  Candidate draw(const StepScores& scores, int64_t row, const RandomDraw& which,
                 std::span<const int32_t> removed);

 private:
  std::vector<int32_t> repeated(const LiveRow& live) const;
  double removed_log_mass(const StepScores& scores, int64_t row,
                          std::span<const int32_t> removed) const;
  Candidate end(const StepScores& scores, int64_t row, const LiveRow& live) const;
  void add_terms(const StepScores& scores, int64_t row, const LiveRow& live,
                 std::vector<Candidate>& result) const;

  const SearchOptions& options_;
  std::vector<int32_t> banned_, context_;  // context: the pieces that the decoder reads first
  std::optional<Sampler> sampler_;
};

}  // namespace fovea
