#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A language of a text with its confidence.
struct DetectedLanguage {
  std::string language;   // ISO 639 code, with the script for Chinese: zh-Hant
  double confidence = 0;  // 0 to 100: probability of the language among all known languages
};

// The code of an undetermined language in BCP 47.
inline constexpr const char* kUndetermined = "und";

// Below the confidence kGuess, a result is only a guess: the text is too short or in no known
// language. From kCertain on, a result is certain enough for an error or a warning.
inline constexpr double kGuess = 40, kCertain = 95;

// Returns the possible languages of a text, the most probable first; empty if there is no evidence.
// The script decides first, then a linear model over character n-grams (Note [Detection]). Reads
// only the first kDetectedBytes bytes.
inline constexpr size_t kDetectedBytes = 4096;
std::vector<DetectedLanguage> detect_language(std::string_view text);

// Returns the first candidate. If there is none or it is a guess, returns kUndetermined with
// confidence 0.
DetectedLanguage sure_language(const std::vector<DetectedLanguage>& candidates);

// Codes of all languages that detect_language() may return, sorted.
std::vector<std::string> detected_languages();

}  // namespace fovea
