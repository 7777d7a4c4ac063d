#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "explain/row_explanation.h"
#include "view/terminal.h"

namespace fovea {

// A pair whose attention is looked at; both sides as pieces with </s>.
struct ExplainedPair {
  std::string text, translation;
  std::vector<int32_t> source, target;
};

// Which word, and in which attention; an empty kind: the encoder's for a word of the source, cross
// for one of the translation. Layer and head −1: the first.
struct ExplainedWord {
  std::string word, kind;
  int64_t layer = -1, head = -1;
};

// A word that was looked for: the place of its first piece, and how often it occurs.
struct FoundWord {
  std::optional<size_t> piece;
  size_t occurrences = 0;

  // "; 'dog' occurs 2 times" if that is why there is no such piece, else "".
  std::string note(const std::string& word) const;
};

// Looks for a word among these pieces: a word that is written so, punctuation around it aside; in
// scripts without blanks, any text; a piece; or the number of a word, from 1. "dog#2" is the
// second occurrence of "dog".
FoundWord find_word(const Vocabulary& vocabulary, std::span<const int32_t> ids,
                    const std::string& word);

// How the attention of one word comes about, step by step with its numbers: as text, or as one line
// of JSON. ExitCode::usage where there is no such word, layer or head.
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
  std::vector<std::string> parts_;  // of the word
  RowExplanation found_;
};

}  // namespace fovea
