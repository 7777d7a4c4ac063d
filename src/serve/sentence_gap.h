#pragma once

#include <string>
#include <string_view>

namespace fovea {

// The text between two sentences of the source, those two sentences and their translations.
struct SentenceGap {
  std::string_view text;
  std::string_view source_before, source_after;
  std::string_view before, after;  // translations; empty if unknown
};

// Whether no blank separates sentences in a language: Chinese and Japanese. The code may have a
// region or a script, as in zh-TW. (Thai, Lao and Khmer separate sentences by blanks.)
bool joins_sentences(std::string_view language);

// The text between the two translations; see Note [Sentence gaps]. An empty target language is
// unknown.
std::string translated_gap(const SentenceGap& gap, std::string_view target_language);

}  // namespace fovea
