#pragma once

#include "decode/search.h"
#include "models/generation_config.h"
#include "text/vocabulary.h"

namespace fovea {

// The frame of a model with these vocabularies. ExitCode::model if a piece is in none of them.
SentenceFrame sentence_frame(const GenerationConfig& config, const Vocabulary& source,
                             const Vocabulary& target);

// The options of a search with the defaults of a model. ExitCode::model if the vocabulary lacks a
// piece that the configuration names.
SearchOptions search_defaults(const GenerationConfig& config, const Vocabulary& target);

}  // namespace fovea
