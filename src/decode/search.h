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
  double length_penalty = 0.6;       // α: score = log-probability / length^α
  double coverage_penalty = 0;       // β of Wu et al. 2016, for finished hypotheses
  double max_length_factor = 2;      // f: at most f · source pieces + 10 pieces, with </s>
  int64_t max_length = 0;            // at most this number of pieces; 0: the model's limit
  bool allow_unknown = false;        // translations may contain <unk>
  bool early_stop = true;            // does not change results (Note [Early stop]); off in tests
  std::vector<int32_t> prefix = {};  // first pieces that each translation must have
  std::optional<SamplerOptions> sampling = {};  // if given: n_best samples instead of a search
  // Before each step, the search calls `wanted` with the number of each sentence. Several threads
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

// Returns the n best translations of each source sentence, best first. Each wanted sentence has at
// least one. If there are several models (an ensemble), the search uses the mean of their
// probabilities. `numbers` holds the index of each sentence in the whole input, which selects its
// random numbers. The result of a sentence does not depend on other sentences (docs/design.md,
// "Determinism", says on which processors the bits are equal). On the host, several threads
// translate. If a model's scores are not finite, throws ExitCode::model.
std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const TokenBatch& source,
                                            std::span<const int64_t> numbers,
                                            const SearchOptions& options);

// Distributes the sentences of a batch over threads (Note [Shares]). Calls `act` with the indices
// of the sentences of each share, one thread per share. If shares throw, throws the first
// exception.
void in_shares(std::span<const Model* const> models, int64_t sentences,
               const std::function<void(std::span<const int64_t> share)>& act);
// Returns the options with `each_step` and `watch` changed so that only one thread at a time calls
// them. Both lock `mutex`, which must outlive the result.
SearchOptions with_serial_callbacks(SearchOptions options, std::mutex& mutex);

// Adds the coverage penalty of Wu et al. 2016, section 7, to the scores of the hypotheses of one
// sentence and sorts them again. It is cp = β Σ_j log(min(Σ_i a_ij, 1)) over source words j and
// target words i, with the mean cross attention a. If there are several models, it is the mean of
// their cp. `source` is the sentence with its </s>; </s> is not one of the words j.
void add_coverage(std::span<const Model* const> models, std::span<const int32_t> source,
                  double beta, std::vector<Hypothesis>& hypotheses);

}  // namespace fovea
