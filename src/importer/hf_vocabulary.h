#pragma once

#include <string>

#include "importer/foreign_pieces.h"
#include "importer/hf_checkpoint.h"
#include "importer/imported_model.h"
#include "importer/language_pieces.h"
#include "models/generation_config.h"

namespace fovea {

// The vocabularies of a checkpoint: the pieces by foreign id, and the text of both sides.
struct HfVocabulary {
  ForeignPieces source, target;  // the same pieces if the model has one vocabulary
  Vocabulary source_text, target_text;
  LanguagePieces languages;  // of a multilingual model
};

// Reads the files of the tokenizer. The model type chooses them. ExitCode::model if a file is
// missing or damaged, or if the tokenizer is not supported.
HfVocabulary hf_vocabulary(const HfCheckpoint& checkpoint);

// Binds a multilingual model to one language pair: adds the language pieces to the generation
// settings. Returns model.languages, empty if unknown. ExitCode::usage with all codes if a code is
// missing or unknown.
std::vector<std::string> bind_languages(const HfCheckpoint& checkpoint,
                                        const HfVocabulary& vocabulary, const ImportSource& source,
                                        GenerationConfig& generation);

}  // namespace fovea
