#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/params.h"
#include "text/vocabulary.h"
#include "text/word_vectors.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/options.h"

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

// Embeddings that begin as word vectors.
struct FirstVectors {
  std::vector<StoreRange> frozen;  // the rows that were found, where they are to stay as they are
  Identity identity;               // of them: a resumed run must find the same
};

// Fills the tables `source/E` and `target/E` of a model from the files that options.vectors names,
// and says how many pieces were found. One table that serves both sides takes from both files,
// those of the source first. Exit::data where the vectors are not as long as the embeddings, or
// where no piece has one.
FirstVectors take_vectors(const TrainOptions& options, const Vocabulary& source,
                          const Vocabulary& target, const ParameterStore& store);

// What take_vectors() would give as identity.
Identity identity_of_vectors(const TrainOptions& options, const Vocabulary& source,
                             const Vocabulary& target);

}  // namespace fovea
