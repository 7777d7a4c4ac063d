#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/intervention.h"
#include "models/model_config.h"
#include "text/vocabulary.h"

namespace fovea {

// An intervention on attention (WhatIf) that names words of the source. The index of a word counts
// from 0, as in Vocabulary::words_of. The last word is </s>.
struct WordWhatIf {
  struct Row {
    int64_t step = 0;                  // decoder step (index of a target piece), from 0
    int64_t word = -1;                 // the word that gets weight 1,
    std::vector<double> weights = {};  // or the weight of each word, with sum 1
    int64_t layer = -1, head = -1;     // −1: all layers, all heads

    bool operator==(const Row&) const = default;
  };

  std::vector<int64_t> masked = {};
  std::vector<HeadName> silent = {};
  std::vector<Row> forced = {};

  bool empty() const { return masked.empty() && silent.empty() && forced.empty(); }
  bool operator==(const WordWhatIf&) const = default;

  // The names of the three members in error messages: options of a command, or fields of a request.
  struct Names {
    const char *masked, *silent, *forced;
  };
  // If a word, layer or head does not exist, weights are not a distribution, or all words are
  // masked, throws ExitCode::usage. `words` is the number of words of the source, with </s>. The
  // message has the name of the member and the possible values.
  void check(const ModelConfig& config, int64_t words, const Names& names) const;

  // Returns the intervention for pieces: the weight of a word is divided equally among its pieces.
  // `words_of` holds the index of the word of each source piece, with </s>. REQUIRES: check()
  // passed.
  WhatIf in_pieces(std::span<const int> words_of) const;

 private:
  void check_row(const Row& row, const ModelConfig& config, int64_t words, const char* name) const;
};

// Returns the ids of a line as the model reads them: cut to the model's limit, then </s>.
std::vector<int32_t> ids_read(const Vocabulary& source, const Model& model,
                              const std::string& line);

}  // namespace fovea
