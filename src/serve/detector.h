#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

struct Detected {
  std::string language;
  double confidence = 0;  // 0 to 100: how probable among all that can be told apart
};

// The languages that can be told apart, and their commonest groups of three characters.
extern const std::pair<const char*, std::u32string_view> kProfiles[];
extern const size_t kProfileCount;

// Which of the languages with a profile a text is written in, the most probable first; empty where
// the text has no letters. See docs/serve.md for how often it is right.
std::vector<Detected> detect_language(std::string_view text);

}  // namespace fovea
