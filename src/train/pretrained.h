#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/params.h"
#include "text/vocabulary.h"
#include "text/word_vectors.h"

namespace fovea {

// How long the rows become that are taken from a file: as they are there, or such that their
// numbers are on the mean as large as those the table starts with, which its layer expects.
enum class RowScale { as_given, like_table };

struct FilledRows {
  std::vector<int32_t> rows;          // those that got a vector, ascending
  int64_t missing = 0;                // pieces that have none and keep their first values
  std::vector<std::string> examples;  // a few of the missing, the first of the vocabulary

  int64_t found() const { return static_cast<int64_t>(rows.size()); }
  // "found 9,120 of 10,000 pieces (91.2 %), missing 880: foo, bar, …"
  std::string summary() const;
};

// Reads only the vectors that pieces of the vocabulary have, so that memory is bounded by these.
WordVectors read_vectors_for(const std::string& path, const Vocabulary& vocabulary);

// Copies the vectors of the vocabulary's pieces into the rows of an embedding table
// [vocabulary.size(), vectors.size()]. A piece that begins a word ("▁house") may be found without
// its mark ("house"); special pieces are filled where the file has them but not counted.
// Exit::data where sizes differ. Call it after allocate() of the store and before training.
FilledRows fill_embeddings(const WordVectors& vectors, const Vocabulary& vocabulary,
                           const ParameterStore::Parameter& table,
                           RowScale scale = RowScale::like_table);

// Zeroes the gradients of rows that are to stay as they are. Call it between backward and the
// update, which then leaves them alone unless it has a weight decay.
void freeze_rows(const ParameterStore& store, const ParameterStore::Parameter& table,
                 std::span<const int32_t> rows);

}  // namespace fovea
