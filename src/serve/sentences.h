#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

// A stretch of a text: a sentence, or what stands between sentences and stays as it is.
struct Stretch {
  std::string_view text;
  bool is_sentence = false;
};

// The longest sentence that a model reads. A longer one is cut after a comma, else after a blank,
// else after a word of a script without blanks, else between two graphemes.
struct SentenceLimit {
  static constexpr size_t kBytes = 600;

  const Vocabulary* vocabulary = nullptr;  // must outlive it; null: only bytes count
  size_t pieces = 0;                       // of this vocabulary

  bool holds(std::string_view text) const;
  // The size of the longest beginning of a text that the limit holds, as far as it is known: at
  // least one byte, at a code point.
  size_t head(std::string_view text) const;
};

// Cuts a text into sentences by the rules of Unicode (UAX 29) with the abbreviations that ICU
// knows of the language. Chinese and Japanese sentences end at 。！？, ｡ and …… as well, without a
// blank behind them; closing quotes and brackets stay with their sentence. Line ends always end a
// sentence. The stretches together are the text; sentences have no blanks at their ends and at
// least one letter or digit. The views point into `text`, which must be UTF-8.
std::vector<Stretch> split_sentences(std::string_view text, const std::string& language,
                                     const SentenceLimit& limit = {});

}  // namespace fovea
