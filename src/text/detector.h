#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fovea {

struct Detected {
  std::string language;   // ISO 639 code, with the script where a language has two: zh-Hant
  double confidence = 0;  // 0 to 100: how probable the language is among all that are known
};

// BCP 47's code of a language that is not determined.
inline constexpr const char* kUndetermined = "und";

// Confidences below kGuess are guesses: the text is in none of the known languages, or too short.
// From kCertain on, a text may be refused or a warning may be given because of its language.
inline constexpr double kGuess = 40, kCertain = 95;

// The languages that a text may be in, the most probable first; empty where there is no evidence.
// The script decides first, then a linear model over groups of characters (Note [Detection]).
// Looks at the first kDetectedBytes bytes.
inline constexpr size_t kDetectedBytes = 4096;
std::vector<Detected> detect_language(std::string_view text);

// The first of them, and kUndetermined with confidence 0 where that is a guess or there is none.
Detected sure_language(const std::vector<Detected>& found);

// Codes of all languages that detect_language() may return, sorted.
std::vector<std::string> detected_languages();

}  // namespace fovea
