#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea {

struct Detected {
  std::string language;
  double confidence = 0;  // 0 to 100: how probable among the languages asked about
};

// The languages that can be told apart, and their commonest groups of three characters.
extern const std::pair<const char*, std::u32string_view> kProfiles[];
extern const size_t kProfileCount;

// Which of `languages` a text is written in, the most probable first. Languages without a profile
// are not found; of a single language that has one, all text with letters is taken to be in it.
// Empty where the text has no letters or no language has a profile. See docs/serve.md for how
// often it is right.
std::vector<Detected> detect_language(std::string_view text,
                                      const std::vector<std::string>& languages);

}  // namespace fovea
