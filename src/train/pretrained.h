#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "nn/params.h"
#include "text/vocabulary.h"
#include "train/checkpoint.h"
#include "train/optimizer.h"
#include "train/train_options.h"
#include "vectors/word_vectors.h"

namespace fovea {

// How vectors from a file are scaled. `as_given` keeps their values. `like_table` scales them so
// that their mean square is that of the initial table, because the next layer expects values of
// this size.
enum class RowScale { as_given, like_table };

// The rows of a table that fill_embeddings() filled, and the pieces without a vector.
struct FilledRows {
  std::vector<int32_t> rows;          // rows with a vector, ascending
  int64_t missing = 0;                // pieces without a vector; they keep their initial values
  std::vector<std::string> examples;  // the first few missing pieces of the vocabulary

  int64_t found() const { return static_cast<int64_t>(rows.size()); }
  // "found 9,120 of 10,000 pieces (91.2 %), missing 880: foo, bar, …"
  std::string summary() const;
};

// Reads only the vectors of pieces in the vocabulary, which limits the memory.
WordVectors read_vectors_for(const std::string& path, const Vocabulary& vocabulary);

// Copies the vectors of the vocabulary's pieces into the rows of an embedding table
// [vocabulary.size(), vectors.size()]. A piece that begins a word ("▁house") may be found without
// its mark ("house"). Special pieces are filled if the file has them, but not counted. Throws
// ExitCode::data if sizes differ. Call it after allocate() of the store and before training.
FilledRows fill_embeddings(const WordVectors& vectors, const Vocabulary& vocabulary,
                           const ParameterStore::Parameter& table,
                           RowScale scale = RowScale::like_table);

// Embeddings that were initialised from word vectors.
struct FirstVectors {
  std::vector<StoreRange> frozen;  // the rows with a vector, if vectors.frozen is set
  RunIdentity identity;            // of the frozen vectors; a resumed run must have the same
};

// Fills the tables `source/E` and `target/E` of a model from the files that options.vectors names,
// and logs how many pieces were found. If one table serves both sides, it is filled from both
// files, and vectors of the source file win. Throws ExitCode::data if the vectors and the
// embeddings have different sizes, or if no piece has a vector.
FirstVectors take_vectors(const TrainOptions& options, const Vocabulary& source,
                          const Vocabulary& target, const ParameterStore& store);

// Returns the identity that take_vectors() would return.
RunIdentity identity_of_vectors(const TrainOptions& options, const Vocabulary& source,
                                const Vocabulary& target);

}  // namespace fovea
