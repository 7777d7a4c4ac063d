#pragma once

#include <charconv>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sip_hash.h"
#include "text/foreign_segmentation.h"
#include "text/sentencepiece_model.h"
#include "text/tokenization.h"
#include "text/vocabulary.h"

namespace fovea {

inline constexpr std::string_view kForeignMagic = "fovea-vocabulary\t2\t";
inline constexpr std::string_view kSpecialNames[kSpecials] = {"<pad>", "<s>", "</s>", "<unk>"};

// The value of a byte piece: 0xE2 for "<0xE2>"; -1 for other pieces.
inline int byte_of(std::string_view piece) {
  unsigned value = 0;
  if (piece.size() != 6 || !piece.starts_with("<0x") || piece[5] != '>') return -1;
  const auto end = std::from_chars(piece.data() + 3, piece.data() + 5, value, 16).ptr;
  return end == piece.data() + 5 ? static_cast<int>(value) : -1;
}

// The data of a vocabulary: all pieces in one string, and an open-addressing hash table of ids. So
// a vocabulary of ten million words needs little more memory than its text.
struct Vocabulary::Table {
  Segmentation segmentation = Segmentation::words;
  std::string text, file;  // `file`: the bytes of a SentencePiece model
  std::vector<size_t> ends;
  std::vector<int64_t> counts;
  std::vector<int32_t> slots;
  // Only for SentencePiece and imported vocabularies.
  std::vector<PieceRole> roles;
  std::unique_ptr<SentencePieceModel> model;
  bool imported = false;  // the text is prepared as in the original program
  std::unique_ptr<ForeignSegmentation> foreign;
  // For imported SentencePiece models: the id of each piece of the library, or -1 for its unknown
  // piece.
  std::vector<int32_t> library_ids;

  explicit Table(Segmentation s) : segmentation(s), slots(16, -1) {
    for (const std::string_view name : kSpecialNames) append(name, 0);
  }

  int32_t size() const { return static_cast<int32_t>(ends.size()); }

  std::string_view name(int32_t id) const {
    const size_t begin = id == 0 ? 0 : ends[id - 1];
    return std::string_view(text).substr(begin, ends[id] - begin);
  }

  size_t slot_of(std::string_view piece) const {
    const size_t mask = slots.size() - 1;
    size_t slot = TableHash()(piece) & mask;
    while (slots[slot] >= 0 && name(slots[slot]) != piece) slot = (slot + 1) & mask;
    return slot;
  }

  // The id of a piece of text; kUnk if there is none. Never the id of another special piece.
  int32_t find(std::string_view piece) const {
    const int32_t id = slots[slot_of(piece)];
    return id < kSpecials ? kUnk : id;
  }

  // The id of a piece that is text in an imported vocabulary, or kUnk.
  int32_t text_id(std::string_view piece) const {
    const int32_t id = find(piece);
    return id < kSpecials || roles[id] == PieceRole::control ? kUnk : id;
  }

  // Adds a piece; returns false if it already exists.
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

  bool has_tokens() const { return model || foreign; }

  // Own models treat every Unicode space as a blank. Imported models have their own rule.
  std::string blanks(const std::string& line) const { return imported ? line : plain_blanks(line); }

  // The pieces of a line for the library, with ids of this vocabulary.
  std::vector<SentencePieceModel::Token> tokens(const std::string& line) const;
  std::vector<int32_t> encode(const std::string& line) const;
  std::vector<SentencePieceModel::Token> foreign_tokens(const std::string& line) const;

  PieceText piece_text(int32_t id) const {
    if (id < 0 || id >= size() || id == kUnk) return {"<unk>", PieceRole::unknown};
    if (id < kSpecials) return {name(id), PieceRole::control};
    const PieceRole role = roles.empty() ? PieceRole::text : roles[id];
    const int byte = role == PieceRole::byte ? byte_of(name(id)) : 0;
    return {name(id), role, static_cast<unsigned char>(byte)};
  }

  std::vector<PieceText> piece_text(std::span<const int32_t> ids) const {
    std::vector<PieceText> result;
    result.reserve(ids.size());
    for (const int32_t id : ids) result.push_back(piece_text(id));
    return result;
  }
};

}  // namespace fovea
