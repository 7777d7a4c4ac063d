#pragma once

#include <span>
#include <string>

#include "serve/served_model.h"

namespace fovea {

// A sentence and its translation, with attention and, after a search, the search tree.
struct SavedSentence {
  std::string text;
  Translation translation;
};

// Returns the web page of the service as one HTML file that needs no server and no network. It
// contains the scripts, the style and the answers for these sentences, among which the reader can
// choose. Sentences may contain any bytes.
std::string saved_page(const ServedModel& model, std::span<const SavedSentence> sentences);

}  // namespace fovea
