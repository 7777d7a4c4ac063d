#pragma once

#include <string>
#include <string_view>

#include "text/vocabulary.h"

namespace fovea {

// Counts that show how well a vocabulary covers text.
struct VocabularyFit {
  int64_t lines = 0, words = 0, whole_words = 0, pieces = 0, unknown = 0;

  void add(const Vocabulary& vocabulary, std::string_view line);
  // Returns, for example, "3 lines: 4.33 pieces per line, 7.692 % unknown pieces, 88.89 % of words
  // covered".
  std::string summary() const;
};

}  // namespace fovea
