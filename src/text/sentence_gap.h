#pragma once

#include <string>
#include <string_view>

namespace fovea {

// The text between two sentences of the source, with both sentences and their translations.
struct SentenceGap {
  std::string_view text;
  std::string_view source_before, source_after;
  std::string_view before, after;  // translations of both sentences; empty if unknown
};

// Returns whether a language writes no blank between sentences: Chinese and Japanese. The code may
// have a region or a script, as in zh-TW. (Thai, Lao and Khmer separate sentences by blanks.)
bool joins_sentences(std::string_view language);

// Returns the text between the two translations; see Note [Sentence gaps]. An empty target language
// means that it is unknown.
std::string translated_gap(const SentenceGap& gap, std::string_view target_language);

}  // namespace fovea
