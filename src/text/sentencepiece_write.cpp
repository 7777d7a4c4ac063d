#include "text/sentencepiece_write.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace fovea {
namespace {

constexpr uint64_t kPieces = 1, kTrainer = 2, kNormaliser = 3;  // of the model
constexpr uint64_t kModelType = 3, kByteFallback = 35;          // of the trainer
constexpr uint64_t kUnkId = 40, kBosId = 41, kEosId = 42, kPadId = 43;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string piece_message(const StoredPiece& piece) {
  std::string score(sizeof piece.score, '\0');
  std::memcpy(score.data(), &piece.score, sizeof piece.score);
  return wire_field(1, piece.text) + varint(2 << 3 | 5) + score +
         wire_field(3, static_cast<uint64_t>(piece.type));
}

}  // namespace

std::string wire_field(uint64_t number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

std::string wire_field(uint64_t number, uint64_t value) {
  return varint(number << 3) + varint(value);
}

std::string write_sentencepiece(const SentencePieceParts& parts) {
  std::string bytes;
  for (const StoredPiece& piece : parts.pieces) bytes += wire_field(kPieces, piece_message(piece));
  const auto unknown = std::ranges::find(parts.pieces, PieceType::unknown, &StoredPiece::type);
  const auto unk_id = static_cast<uint64_t>(unknown - parts.pieces.begin());
  constexpr auto kNone = static_cast<uint64_t>(-1);
  bytes += wire_field(kTrainer, wire_field(kModelType, static_cast<uint64_t>(parts.model)) +
                                    wire_field(kByteFallback, uint64_t{parts.byte_fallback}) +
                                    wire_field(kUnkId, unk_id) + wire_field(kBosId, kNone) +
                                    wire_field(kEosId, kNone) + wire_field(kPadId, kNone));
  bytes += wire_field(kNormaliser, wire_field(1, std::string_view("imported")) +
                                       wire_field(2, parts.character_map) +
                                       wire_field(3, uint64_t{parts.add_dummy_prefix}) +
                                       wire_field(4, uint64_t{parts.remove_extra_whitespaces}));
  return bytes;
}

}  // namespace fovea
