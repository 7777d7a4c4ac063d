#pragma once

#include <string>

#include "decode/model_bundle.h"
#include "vectors/word_vectors.h"

namespace fovea {

// A side of a translation model.
enum class LanguageSide { source, target };

// Returns the embeddings of the words of one side of a model. (Both sides may share one table.) If
// the model has no such table, throws ExitCode::model.
WordVectors embeddings_of(const ModelBundle& bundle, LanguageSide side);

// Returns the row of a word that a user typed. Tries the word as typed, then in NFC, then with
// SentencePiece's marker of the beginning of a word. If there is no such row, returns −1.
int64_t find_typed(const WordVectors& vectors, const std::string& typed);

}  // namespace fovea
