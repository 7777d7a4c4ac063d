#pragma once

#include <string>

#include "decode/model_bundle.h"
#include "vectors/word_vectors.h"

namespace fovea {

// A side of a translation model.
enum class LanguageSide { source, target };

// Returns the embeddings of the words of one side of a model, also if both sides share one table.
// Throws ExitCode::model if the model has no such table.
WordVectors embeddings_of(const ModelBundle& bundle, LanguageSide side);

// Returns the row of a word that a user typed, or −1. Tries the word as typed, then in NFC, then
// with SentencePiece's marker of the beginning of a word.
int64_t find_typed(const WordVectors& vectors, const std::string& typed);

}  // namespace fovea
