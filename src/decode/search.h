#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "decode/beam.h"
#include "decode/sampler.h"
#include "models/model.h"

namespace fovea {

// How to look for a translation. Every field has the meaning of the option of `fovea translate`
// with its name.
struct SearchOptions {
  int64_t beam = 4;  // 1 is greedy search
  int64_t n_best = 1;
  double length_penalty = 0.6;       // α: score = log-probability / length^α
  double coverage_penalty = 0;       // β of Wu et al. 2016, applied to the finished hypotheses
  double max_length_factor = 2;      // at most this × source pieces + 10 pieces, </s> counted
  int64_t max_length = 0;            // and at most this many; 0: the model's limit
  bool allow_unknown = false;        // may produce <unk>
  bool early_stop = true;            // exact: see Note [Early stop]; off only in tests
  std::vector<int32_t> prefix = {};  // every translation begins with these pieces, possible or not
  std::optional<SamplerOptions> sampling = {};  // n_best draws instead of a search
  // Asked before each step with a sentence's number, perhaps by several threads at once; one that
  // is not wanted any more leaves the batch and has no translations. On a GPU not all are asked,
  // and while others are wanted such a one may stay, be heard of and have translations.
  std::function<bool(int64_t number)> wanted = nullptr;
  // Called after each step with a sentence's number and its search as it stands; this and watch by
  // any thread, one at a time.
  std::function<void(int64_t number, const Beam& beam)> each_step = nullptr;
  // Called with a sentence's number and its search when that has ended.
  std::function<void(int64_t number, const Beam& beam)> watch = nullptr;

  // Throws Exit::usage, naming the option, where a value makes no sense.
  void check() const;
};

// The n best translations of each source, best first; at least one each that is wanted. Several
// models are an ensemble: the mean of their probabilities counts. `numbers` are the sentences'
// numbers in the whole input, which random numbers depend on. A sentence's result does not depend
// on the others (docs/design.md, "Determinism", says on which processors to the bit). On the host
// threads share the sentences.
// Throws Exit::model where a model's scores are not finite.
std::vector<std::vector<Hypothesis>> search(std::span<const Model* const> models,
                                            const Tokens& source, std::span<const int64_t> numbers,
                                            const SearchOptions& options);

// Wu et al. 2016, section 7: cp = β Σ_j log(min(Σ_i a_ij, 1)) over source words j and target words
// i, where a is the mean cross attention. Adds it to each score and sorts again. `source` is one
// sentence with its </s>, which is not counted.
void add_coverage(const Model& model, std::span<const int32_t> source, double beta,
                  std::vector<Hypothesis>& hypotheses);

}  // namespace fovea
