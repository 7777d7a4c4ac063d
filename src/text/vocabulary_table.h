#pragma once

#include <charconv>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/pieces.h"
#include "text/sentencepiece_model.h"
#include "text/vocabulary.h"

namespace fovea {

inline constexpr std::string_view kSpecialNames[kSpecials] = {"<pad>", "<s>", "</s>", "<unk>"};

// "<0xE2>" is 0xE2; -1 for anything else.
inline int byte_of(std::string_view piece) {
  unsigned value = 0;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const auto end = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16).ptr;
  return end == piece.data() + 5 ? static_cast<int>(value) : -1;
}

// All pieces in one string, and an open-addressing table of ids over it: a vocabulary of ten
// million words takes little more than its text.
struct Vocabulary::Table {
  Cut cut = Cut::words;
  std::string text, file;  // `file`: a SentencePiece model as it was read
  std::vector<size_t> ends;
  std::vector<int64_t> counts;
  std::vector<int32_t> slots;
  std::vector<Role> roles;  // of SentencePiece only
  std::unique_ptr<SentencePieceModel> model;

  explicit Table(Cut c) : cut(c), slots(16, -1) {
    for (const std::string_view name : kSpecialNames) append(name, 0);
  }

  int32_t size() const { return static_cast<int32_t>(ends.size()); }

  std::string_view name(int32_t id) const {
    const size_t begin = id == 0 ? 0 : ends[id - 1];
    return std::string_view(text).substr(begin, ends[id] - begin);
  }

  size_t slot_of(std::string_view piece) const {
    const size_t mask = slots.size() - 1;
    size_t slot = std::hash<std::string_view>()(piece) & mask;
    while (slots[slot] >= 0 && name(slots[slot]) != piece) slot = (slot + 1) & mask;
    return slot;
  }

  // The id of text: never a special one.
  int32_t find(std::string_view piece) const {
    const int32_t id = slots[slot_of(piece)];
    return id < kSpecials ? kUnk : id;
  }

  // False where the piece is there already.
  bool append(std::string_view piece, int64_t count) {
    const size_t slot = slot_of(piece);
    if (slots[slot] >= 0) return false;
    slots[slot] = size();
    text += piece;
    ends.push_back(text.size());
    counts.push_back(count);
    if (2 * ends.size() > slots.size()) grow();
    return true;
  }

  void grow() {
    slots.assign(2 * slots.size(), -1);
    for (int32_t id = 0; id < size(); ++id) slots[slot_of(name(id))] = id;
  }

  Shown shown(int32_t id) const {
    if (id < 0 || id >= size() || id == kUnk) return {"<unk>", Role::unknown};
    if (id < kSpecials) return {name(id), Role::control};
    const Role role = roles.empty() ? Role::text : roles[id];
    const int byte = role == Role::byte ? byte_of(name(id)) : 0;
    return {name(id), role, static_cast<unsigned char>(byte)};
  }

  std::vector<Shown> shown(std::span<const int32_t> ids) const {
    std::vector<Shown> result;
    result.reserve(ids.size());
    for (const int32_t id : ids) result.push_back(shown(id));
    return result;
  }
};

}  // namespace fovea
