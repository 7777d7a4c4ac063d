#pragma once

#include <span>
#include <string>

#include "serve/engine.h"

namespace fovea {

// A sentence with what was asked of Translator about it: attention, and the tree of the search
// where there was one.
struct SavedSentence {
  std::string text;
  Translation translation;
};

// The page of the service as one file that needs no server and no network: its modules, its style
// and its answer about these sentences, of which the reader chooses. Sentences may hold any bytes.
std::string saved_page(const Engine& engine, std::span<const SavedSentence> sentences);

}  // namespace fovea
