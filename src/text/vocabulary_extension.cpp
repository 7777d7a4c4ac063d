#include <algorithm>
#include <cstring>

#include "base/ascii.h"
#include "base/check.h"
#include "base/utf8.h"
#include "text/tokenization.h"
#include "text/vocabulary.h"
#include "text/vocabulary_table.h"

namespace fovea {
namespace {

void check_new_piece(const std::string& piece) {
  const char* error = nullptr;
  if (piece.empty()) error = "is empty";
  if (piece.size() > Vocabulary::kMaxPieceBytes) error = "has more than 1,024 bytes";
  if (!is_utf8(piece) || piece.find('\0') != piece.npos) error = "is not text";
  if (!error && split_words(piece) != std::vector<std::string_view>{piece}) error = "has a blank";
  check(!error, ExitCode::data, "new piece '", printable(piece.substr(0, 80)), "' ",
        error ? error : "", "; name pieces without blanks");
}

// Appends a number of a protocol buffer.
void append_varint(std::string& bytes, size_t value) {
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  bytes += static_cast<char>(value);
}

// A piece as a field of a SentencePiece model. The fields of a message may follow each other in any
// order, so a piece can be appended to a file.
std::string stored_piece(std::string_view text) {
  constexpr float kScore = 0;
  std::string piece = "\x0A";  // field 1: the text
  append_varint(piece, text.size());
  piece += text;
  piece += '\x15';  // field 2: the score
  piece.append(reinterpret_cast<const char*>(&kScore), sizeof kScore);
  piece += '\x18';  // field 3: the type
  piece += static_cast<char>(PieceType::user_defined);
  std::string field = "\x0A";  // field 1 of the model: a piece
  append_varint(field, piece.size());
  return field + piece;
}

}  // namespace

Vocabulary Vocabulary::with_pieces(const std::vector<std::string>& pieces) const {
  std::vector<Entry> added;
  for (const std::string& given : pieces) {
    check_new_piece(given);
    const std::string piece = canonical(given);
    const bool known = table_->slots[table_->slot_of(piece)] >= 0;
    if (!known && std::ranges::find(added, piece, &Entry::piece) == added.end())
      added.push_back({piece, 0});
  }
  if (added.empty()) return *this;
  check(!table_->foreign, ExitCode::usage,
        "new pieces cannot be added to an imported vocabulary of ", name_of(cut()),
        "; train without new pieces");
  if (cut() == Segmentation::sentencepiece) {
    std::string bytes = table_->file;
    const SentencePieceFile file = check_sentencepiece(table_->file, "the vocabulary");
    for (const Entry& entry : added) {  // the file of an imported model may have it, without an id
      if (std::ranges::find(file.pieces, entry.piece, &StoredPiece::text) == file.pieces.end())
        bytes += stored_piece(entry.piece);
      if (table_->imported) bytes = with_order(bytes, {{entry.piece}});
    }
    return parse_sentencepiece(bytes, "the vocabulary with new pieces");
  }
  std::vector<Entry> all;
  for (int32_t id = kSpecials; id < size(); ++id) all.push_back({std::string(name(id)), count(id)});
  all.insert(all.end(), added.begin(), added.end());
  return from_entries(cut(), all);
}

}  // namespace fovea
