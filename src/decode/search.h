#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "decode/beam.h"
#include "decode/sampler.h"
#include "models/model.h"

namespace fovea {

// The options of a search. Each field has the meaning of the option of `fovea translate` with the
// same name.
struct SearchOptions {
  int64_t beam = 4;  // number of hypotheses; 1 is greedy search
  int64_t n_best = 1;
  double length_penalty = 0.6;   // α: score = log-probability / length^α
  double coverage_penalty = 0;   // β of Wu et al. 2016, applied to the finished hypotheses
  double max_length_factor = 2;  // f: at most f × source pieces + 10 pieces, with </s>
  int64_t max_length = 0;      // at most this many pieces, with target_prefix; 0: the model's limit
  bool allow_unknown = false;  // translations may contain <unk>
  bool early_stop = true;      // never changes the result: Note [Early stop]; off only in tests
  BeamRule rule = BeamRule::fovea;
  EarlyStopping early_stopping = EarlyStopping::no;  // of BeamRule::transformers
  int64_t min_length = 0;              // at least this many pieces, with target_prefix and </s>
  bool forced_end = true;              // </s> is the last of the most possible pieces
  int64_t no_repeat_ngram = 0;         // n: no n pieces occur twice; 0: they may
  std::vector<int32_t> suppress = {};  // pieces that no translation has
  bool renormalize = false;            // the probabilities of the possible pieces sum to 1
  std::vector<int32_t> prefix = {};    // each translation begins with these pieces, even improbable
  std::optional<SamplerOptions> sampling = {};  // n_best samples instead of a search
  // The search calls `wanted` before each step with the number of each sentence. Several threads
  // may call it at the same time. If it returns false, the sentence leaves the batch and has no
  // translations. On a GPU, the search does not call it for every sentence. If other sentences of
  // the batch are wanted, an unwanted sentence may stay; then it still has callbacks and
  // translations.
  std::function<bool(int64_t number)> wanted = nullptr;
  // After each step, the search calls `each_step` with the number of each sentence and the current
  // state of its search. Any thread may call `each_step` and `watch`, but only one thread at a
  // time.
  std::function<void(int64_t number, const Beam& beam)> each_step = nullptr;
  // When the search for a sentence has ended, `watch` is called with the number of the sentence and
  // its search.
  std::function<void(int64_t number, const Beam& beam)> watch = nullptr;

  // If a value is out of range, throws ExitCode::usage with the name of the option.
  void check() const;
};

// The constraints of the translation of one sentence.
struct SentenceConstraints {
  std::vector<int32_t> prefix = {};    // it begins with these pieces; empty: SearchOptions::prefix
  std::vector<TermPieces> terms = {};  // it has all of these terms; at most RequiredTerms::kMost
};

// Returns the n best translations of each source, best first; each wanted source has at least one.
// Sources have the pieces of the frame of the models. `constraints` has one element per source, or
// none. Several models are an ensemble: the search uses the mean of their probabilities. `numbers`
// are the numbers of the sentences in the whole input; random numbers depend on them. The result of
// a sentence does not depend on the others (docs/design.md, "Determinism", says on which processors
// the bits are equal). On the host, threads share the sentences. Throws ExitCode::model if a
// model's scores are not finite.
std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const TokenBatch& source,
                                            std::span<const int64_t> numbers,
                                            const SearchOptions& options,
                                            std::span<const SentenceConstraints> constraints = {});

// Distributes the sentences of a batch over threads (Note [Shares]). Calls `act` with the indices
// of the sentences of each share, one thread per share. If shares throw, throws the first
// exception.
void in_shares(std::span<const Model* const> models, int64_t sentences,
               const std::function<void(std::span<const int64_t> share)>& act);
// Returns the options with `each_step` and `watch` changed so that only one thread at a time calls
// them. Both lock `mutex`, which must outlive the result.
SearchOptions with_serial_callbacks(SearchOptions options, std::mutex& mutex);

// Wu et al. 2016, section 7: cp = β Σ_j log(min(Σ_i a_ij, 1)) over source words j and target words
// i; a is the mean cross attention. Adds the mean cp of the models to each score and sorts the
// hypotheses again. `source` is one sentence without its frame but with </s>, which does not count.
void add_coverage(std::span<const Model* const> models, std::span<const int32_t> source,
                  double beta, std::vector<Hypothesis>& hypotheses);

}  // namespace fovea
