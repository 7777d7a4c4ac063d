#pragma once

#include <string>

#include "decode/package.h"
#include "text/word_vectors.h"

namespace fovea {

enum class Side { source, target };

// The embeddings of one side of a model, or the other side's where one table serves both.
// Exit::model where there is no such table.
WordVectors embeddings_of(const Package& package, Side side);

// The place of a word as somebody would type it: itself, in composed letters, or with
// SentencePiece's mark of a word's beginning; −1: there is none.
int64_t find_typed(const WordVectors& vectors, const std::string& typed);

}  // namespace fovea
