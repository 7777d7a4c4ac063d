#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::testing {

// Distinct words of 16 ASCII characters with the same std::hash. The function of libstdc++ is
// MurmurHash64A with a fixed seed: h ← (h ⊕ mix(k)) · m for each eight bytes k. Each step can be
// inverted, so the second half of a word follows from the first one. With another library there are
// no such words.
inline std::vector<std::string> colliding_words(size_t count) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995, kSeed = 0xc70f6907, kTarget = 1;
  uint64_t inverse = kMultiplier;  // of the multiplier, modulo 2^64, by Newton's iteration
  for (int i = 0; i < 6; ++i) inverse *= 2 - kMultiplier * inverse;
  const auto shift = [](uint64_t v) { return v ^ v >> 47; };
  const auto is_visible = [](char c) { return c > ' ' && c < '\x7F'; };
  std::vector<std::string> words;
  std::string word(16, 'a');
  for (uint64_t number = 0; words.size() < count && number < 100'000 * (count + 1); ++number) {
    for (size_t i = 0; i < 8; ++i) word[i] = static_cast<char>('a' + (number >> (4 * i) & 15));
    uint64_t first = 0;
    std::memcpy(&first, word.data(), 8);
    const uint64_t start = kSeed ^ word.size() * kMultiplier;
    const uint64_t half = (start ^ shift(first * kMultiplier) * kMultiplier) * kMultiplier;
    const uint64_t second = shift((half ^ kTarget) * inverse) * inverse;
    std::memcpy(word.data() + 8, &second, 8);
    if (!std::all_of(word.begin() + 8, word.end(), is_visible)) continue;
    const auto hash = std::hash<std::string_view>();
    if (!words.empty() && hash(word) != hash(words.front())) return {};
    words.push_back(word);
  }
  return words;
}

}  // namespace fovea::testing
