#include "serve/detector.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kMostCharacters = 4000;        // more tell nothing new
constexpr double kOffset = 10, kUnseen = 1600;  // of ranks: p(rank) ∝ 1 / (rank + 10)
constexpr double kSoftness = 0.25;  // neighbouring groups share characters and are no four proofs

using Ranks = std::map<std::u32string_view, double>;

const std::map<std::string, Ranks>& profiles() {
  static const std::map<std::string, Ranks> all = [] {
    std::map<std::string, Ranks> made;
    for (size_t p = 0; p < kProfileCount; ++p)
      for (size_t i = 0; i + 3 <= kProfiles[p].second.size(); i += 3)
        made[kProfiles[p].first].emplace(kProfiles[p].second.substr(i, 3),
                                         static_cast<double>(i) / 3);
    return made;
  }();
  return all;
}

// Letters in lower case, one _ for all that stands between words.
std::u32string letters_of(std::string_view text) {
  std::u32string letters = U"_";
  for (const char32_t c : code_points(text)) {
    if (letters.size() == kMostCharacters) break;
    const auto code = static_cast<UChar32>(c);
    if (u_isalpha(code))
      letters += static_cast<char32_t>(u_tolower(code));
    else if (letters.back() != U'_')
      letters += U'_';
  }
  if (letters.back() != U'_') letters += U'_';
  return letters;
}

}  // namespace

std::vector<Detected> detect_language(std::string_view text) {
  const std::u32string letters = letters_of(text);
  std::vector<Detected> found;
  if (letters.size() < 3) return found;
  for (const auto& [language, profile] : profiles()) {
    double sum = 0;
    for (size_t i = 0; i + 3 <= letters.size(); ++i) {
      const auto rank = profile.find(std::u32string_view(letters).substr(i, 3));
      sum -= std::log((rank == profile.end() ? kUnseen : rank->second) + kOffset);
    }
    found.push_back({language, sum * kSoftness});
  }
  std::ranges::stable_sort(found, std::greater(), &Detected::confidence);
  double total = 0;
  const double top = found.front().confidence;
  for (Detected& d : found) total += d.confidence = std::exp(d.confidence - top);
  for (Detected& d : found) d.confidence = std::round(1000 * d.confidence / total) / 10;
  return found;
}

}  // namespace fovea
