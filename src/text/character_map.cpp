#include <cstring>

#include "base/check.h"
#include "text/sentencepiece_model.h"

namespace fovea {
namespace {

// Note [Character map]: the file format is the size of a trie in four bytes, the trie, and the
// replacements, each terminated by NUL. The trie is a double array of 32-bit units. From the unit
// at p, byte c leads to the unit at p ⊕ offset(p) ⊕ c if the label of that unit is c. If the unit
// at p has a leaf, a match ends there; the unit at p ⊕ offset(p) then holds the offset of its
// replacement. The library does not check offsets, and its array holds at most 32 matches.
// Therefore this check visits once every unit that a text can reach.
class CharacterMapCheck {
 public:
  CharacterMapCheck(std::vector<uint32_t> units, std::string_view replacements,
                    const std::string& name)
      : units_(std::move(units)), replacements_(replacements), name_(name),
        matches_(units_.size(), kUnseen) {}

  void check_all() { visit(0, 0); }

 private:
  static constexpr int8_t kUnseen = -1, kActive = -2;
  static constexpr int kMaxMatches = 32, kMaxDepth = 120;

  [[noreturn]] void fail_damaged() const {
    fail(ExitCode::model, name_,
         ": the normalisation table is damaged; train the vocabulary again");
  }

  static uint32_t offset(uint32_t unit) { return (unit >> 10) << ((unit & (1u << 9)) >> 6); }
  static bool has_leaf(uint32_t unit) { return (unit >> 8) & 1; }
  static uint32_t label(uint32_t unit) { return unit & ((1u << 31) | 0xFF); }
  static uint32_t value(uint32_t unit) { return unit & ((1u << 31) - 1); }

  // The maximum number of matches on any path from the unit at p downwards.
  int visit(uint32_t p, int depth) {
    if (matches_[p] == kActive || depth > kMaxDepth) fail_damaged();
    if (matches_[p] != kUnseen) return matches_[p];
    matches_[p] = kActive;
    const uint32_t base = p ^ offset(units_[p]);
    if ((base | 0xFF) >= units_.size()) fail_damaged();
    int below = 0;
    for (uint32_t c = 0; c < 256; ++c)
      if (label(units_[base ^ c]) == c) below = std::max(below, visit(base ^ c, depth + 1));
    const bool leaf = p != 0 && has_leaf(units_[p]);
    if (leaf && value(units_[base]) >= replacements_.size()) fail_damaged();
    const int matches = below + (leaf ? 1 : 0);
    if (matches > kMaxMatches) fail_damaged();
    matches_[p] = static_cast<int8_t>(matches);
    return matches;
  }

  std::vector<uint32_t> units_;
  std::string_view replacements_;
  const std::string& name_;
  std::vector<int8_t> matches_;
};

}  // namespace

void check_character_map(std::string_view map, const std::string& name) {
  if (map.empty()) return;
  const auto fail_damaged = [&] {
    fail(ExitCode::model, name, ": the normalisation table is damaged; train the vocabulary again");
  };
  uint32_t trie = 0;
  if (map.size() <= sizeof trie) fail_damaged();
  std::memcpy(&trie, map.data(), sizeof trie);
  map.remove_prefix(sizeof trie);
  if (trie == 0 || trie % 1024 != 0 || trie >= map.size() || map.back() != '\0') fail_damaged();
  std::vector<uint32_t> units(trie / sizeof(uint32_t));
  std::memcpy(units.data(), map.data(), trie);
  CharacterMapCheck(std::move(units), map.substr(trie), name).check_all();
}

}  // namespace fovea
