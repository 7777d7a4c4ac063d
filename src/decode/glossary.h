#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "decode/required_terms.h"
#include "text/vocabulary.h"

namespace fovea {

// An entry of a glossary that occurs in a line.
struct GlossaryMatch {
  size_t begin = 0, end = 0;  // bytes of the line
  std::string_view target;    // the required translation; lives as long as the glossary
};

// Source terms with their required translations. A term occurs in a line if its words do, in the
// same spelling; punctuation marks are words, and so are the letters of scripts without blanks.
// Thread-safe once it is complete.
class Glossary {
 public:
  // Reads a file with a term, a tab and its translation in each line. Ignores empty lines. Throws
  // ExitCode::data with the line if one is malformed.
  static Glossary read(const std::string& path);

  // The last translation of a source term replaces earlier ones. Throws ExitCode::data with `where`
  // if one of both is blank.
  void add(std::string_view source, std::string_view target, const std::string& where);
  int64_t size() const { return static_cast<int64_t>(targets_.size()); }
  const std::vector<std::string>& targets() const { return targets_; }

  // The occurrences of terms in the line, from left to right and without overlap; of terms that
  // begin with the same word, the longest. The time is linear in the length of the line and of the
  // longest terms with the same beginning.
  std::vector<GlossaryMatch> matches(std::string_view line) const;

 private:
  struct Node {  // of a trie over words
    std::unordered_map<std::string, int32_t> children = {};
    int32_t target = -1;  // index into targets_ of the term that ends here
  };
  std::vector<Node> nodes_{1};
  std::vector<std::string> targets_;
};

// The pieces of a required translation: those at the beginning of a word and, if the vocabulary has
// them, those inside a word or after punctuation. Empty if a character has no piece.
TermPieces term_pieces(const Vocabulary& vocabulary, std::string_view term);

// The terms of the matches that `vocabulary` can spell, each once, at most RequiredTerms::kMost.
std::vector<TermPieces> required_terms(const std::vector<GlossaryMatch>& matches,
                                       const Vocabulary& vocabulary);

}  // namespace fovea
