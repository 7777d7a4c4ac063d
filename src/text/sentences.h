#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

// A part of a text: a sentence, or the text between sentences, which is not translated.
struct TextSpan {
  std::string_view text;
  bool is_sentence = false;
};

// The limit of the length of a sentence. split_sentences() cuts a longer sentence after a comma,
// else after a blank, else after a word of a script without blanks, else between two graphemes.
struct SentenceLimit {
  static constexpr size_t kBytes = 600;

  const Vocabulary* vocabulary = nullptr;  // must outlive this object; null: only bytes count
  size_t pieces = 0;                       // maximum number of pieces of this vocabulary

  bool holds(std::string_view text) const;
  // Returns the size in bytes of a prefix of the text that is within the limit and ends between
  // code points. This is about the longest such prefix. If even one code point exceeds the limit,
  // returns its size.
  size_t head(std::string_view text) const;
};

// Splits a text into sentences by the rules of Unicode (UAX 29) and ICU's abbreviations of the
// language. Chinese and Japanese sentences also end at 。！？, ｡ and ……, without a blank after them;
// closing quotes and brackets belong to their sentence. Line ends always end a sentence. All spans
// together are the whole text. Sentences have at least one letter or digit, and no blanks at their
// ends. The views point into `text`, which must be UTF-8.
std::vector<TextSpan> split_sentences(std::string_view text, const std::string& language,
                                      const SentenceLimit& limit = {});

}  // namespace fovea
