#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "explain/row_explanation.h"
#include "view/terminal.h"

namespace fovea {

// A sentence pair to explain. Both sentences are ids of pieces that end with </s>.
struct ExplainedPair {
  std::string text, translation;
  std::vector<int32_t> source, target;
};

// The word to explain, and the attention whose computation is shown. If the kind is empty, it is
// "encoder" for a word of the source and "cross" for a word of the translation. Layer −1 means the
// first layer, and head −1 the first head.
struct ExplainedWord {
  std::string word, kind;
  int64_t layer = -1, head = -1;
};

// The result of a search for a word: the index of its first piece, if the word was found, and the
// number of its occurrences.
struct FoundWord {
  std::optional<size_t> piece;
  size_t occurrences = 0;

  // If no piece was found because the word occurs several times, returns "; 'dog' occurs 2 times",
  // otherwise "".
  std::string note(const std::string& word) const;
};

// Finds a word among these pieces. `word` is a word without punctuation around it, any text if the
// script has no blanks, a piece, or the number of a word, counted from 1. "dog#2" is the second
// occurrence of "dog".
FoundWord find_word(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                    const std::string& word);

// An explanation of the attention of one word, step by step, as text or as one line of JSON. If
// there is no such word, layer or head, throws ExitCode::usage. `pair` must outlive the object.
class WordExplanation {
 public:
  WordExplanation(const ModelBundle& package, const ExplainedPair& pair,
                  const ExplainedWord& asked);

  std::string text(const TerminalOptions& terminal) const;
  std::string json() const;

 private:
  AttentionRow find(const ModelBundle& package);
  std::string title() const;

  const ExplainedPair& pair_;
  ExplainedWord asked_;
  std::vector<std::string> parts_;  // text of the pieces of the word
  RowExplanation found_;
};

}  // namespace fovea
