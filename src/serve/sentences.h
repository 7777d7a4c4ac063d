#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A stretch of a text: a sentence, or what stands between sentences and stays as it is.
struct Stretch {
  std::string_view text;
  bool is_sentence = false;
};

// Longer sentences are cut in two where a comma, or at least a blank, allows it, because models
// have a longest sentence they read.
inline constexpr size_t kLongestSentence = 600;  // bytes

// Cuts a text into sentences by the rules of Unicode (UAX 29) with the abbreviations that ICU
// knows of the language. Line ends always end a sentence. The stretches together are the text;
// sentences have no blanks at their ends and at least one letter or digit. The views point into
// `text`, which must be UTF-8.
std::vector<Stretch> split_sentences(std::string_view text, const std::string& language);

}  // namespace fovea
