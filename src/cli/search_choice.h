#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "decode/glossary.h"
#include "decode/model_bundle.h"
#include "decode/search.h"

namespace fovea {

class Command;

// The options of a search on the command line. Absent ones have the value of the model.
struct SearchChoice {
  std::optional<int64_t> beam, min_length, max_length, no_repeat_ngram;
  std::optional<double> length_penalty, max_length_factor;
  int64_t n_best = 1;
  double coverage_penalty = 0;
  bool allow_unknown = false, sample = false;
  SamplerOptions sampler;
  std::string prefix, glossary;

  void add_to(Command& command);
  // `defaults` with these options, without the prefix.
  SearchOptions apply_to(SearchOptions defaults) const;
  SearchOptions options(const ModelBundle& bundle) const;
  // Reads the glossary, if any. Warns about translations that the vocabulary cannot spell.
  std::optional<Glossary> read_glossary(const Vocabulary& vocabulary) const;

 private:
  void add_sampling(Command group);
};

}  // namespace fovea
