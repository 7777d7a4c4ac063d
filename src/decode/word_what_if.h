#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/config.h"
#include "models/what_if.h"
#include "text/vocabulary.h"

namespace fovea {

// A WhatIf as users put it, in words of the source: counted from 0, as Vocabulary::words_of counts
// them, </s> the last.
struct WordWhatIf {
  struct Row {
    int64_t step = 0;                  // of the decoder: pieces of the target, from 0
    int64_t word = -1;                 // has all the weight,
    std::vector<double> weights = {};  // or each word its own, Σ = 1
    int64_t layer = -1, head = -1;     // −1: all

    bool operator==(const Row&) const = default;
  };

  std::vector<int64_t> masked = {};
  std::vector<HeadName> silent = {};
  std::vector<Row> forced = {};

  bool empty() const { return masked.empty() && silent.empty() && forced.empty(); }
  bool operator==(const WordWhatIf&) const = default;

  // What errors call its parts: options of a command or fields of a request.
  struct Names {
    const char *masked, *silent, *forced;
  };
  // Throws Exit::usage, naming the part and what is possible, where words, layers or heads do not
  // exist, weights are no distribution, or nothing would be left to look at.
  void check(const ModelConfig& config, int64_t words, const Names& names) const;

  // Weight of a word is shared evenly by its pieces. words_of: of the source's pieces with </s>.
  // REQUIRES: check() passed.
  WhatIf in_pieces(std::span<const int> words_of) const;

 private:
  void check_row(const Row& row, const ModelConfig& config, int64_t words, const char* name) const;
};

// A line as a model reads it, cut to its limit, with </s>.
std::vector<int32_t> ids_read(const Vocabulary& source, const Model& model,
                              const std::string& line);

}  // namespace fovea
