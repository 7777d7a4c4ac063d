#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// A language of a text with its confidence.
struct DetectedLanguage {
  std::string language;   // ISO 639 code; with the script if the language has two: zh-Hant
  double confidence = 0;  // 0 to 100: the probability of the language among all known ones
};

// The code of an undetermined language in BCP 47.
inline constexpr const char* kUndetermined = "und";

// A confidence below kGuess is a guess: the text is in no known language, or too short. From
// kCertain on, the language of a text can be the reason for an error or a warning.
inline constexpr double kGuess = 40, kCertain = 95;

// Returns the possible languages of a text, the most probable first; empty if there is no evidence.
// The script decides first, then a linear model over character n-grams (Note [Detection]). Reads
// only the first kDetectedBytes bytes.
inline constexpr size_t kDetectedBytes = 4096;
std::vector<DetectedLanguage> detect_language(std::string_view text);

// Returns the first one, or kUndetermined with confidence 0 if it is a guess or there is none.
DetectedLanguage sure_language(const std::vector<DetectedLanguage>& candidates);

// Codes of all languages that detect_language() may return, sorted.
std::vector<std::string> detected_languages();

}  // namespace fovea
