#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "base/check.h"
#include "base/sip_hash.h"
#include "base/utf8.h"
#include "text/sentencepiece_model.h"
#include "text/sentencepiece_write.h"
#include "text/vocabulary_table.h"

namespace fovea {
namespace {

constexpr size_t kMaxPieces = 1 << 20;
constexpr float kMaxScore = 1e7f;

// Note [Imported models]: the file of an imported model is the original file, to which Fovea
// appends one field for each id: a message with the name (1) and the role (2) of the piece. The
// library ignores the fields, because the format reserves numbers from 200 for extensions. So its
// segmentation and normalisation are those of the original, whatever the order of the ids is.
constexpr uint64_t kOrderField = 6'713'206;
constexpr PieceRole kOrderRoles[] = {PieceRole::text, PieceRole::control, PieceRole::byte};

// A field of a protocol buffer message: a number or a sequence of bytes.
struct WireField {
  uint64_t number = 0;
  int type = 0;  // 0 varint, 1 eight bytes, 2 counted bytes, 5 four bytes
  uint64_t value = 0;
  std::string_view bytes;
};

// A reader of the fields of a message. Errors are ExitCode::model and name the byte offset in the
// file.
class WireReader {
 public:
  WireReader(std::string_view message, const std::string& name, const char* file)
      : at_(message.data()), end_(at_ + message.size()), file_(file), name_(name) {}

  bool next(WireField& field) {
    if (at_ == end_) return false;
    const uint64_t tag = varint();
    field.number = tag >> 3;
    field.type = static_cast<int>(tag & 7);
    if (field.number == 0 || field.number >= (1u << 29)) fail_at("a field with an invalid number");
    switch (field.type) {
      case 0:
        field.value = varint();
        break;
      case 1:
        field.bytes = take(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.bytes = take(4);
        break;
      default:
        fail_at("a field of unknown type");
    }
    return true;
  }

  [[noreturn]] void fail_at(const char* found) const {
    fail(ExitCode::model, name_, ": byte ", at_ - file_, ": ", found,
         "; the file is damaged or not a SentencePiece model: train the vocabulary again");
  }

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      if (at_ == end_) fail_at("the file ends inside a number");
      const auto byte = static_cast<unsigned char>(*at_++);
      value |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
    fail_at("a number of more than ten bytes");
  }

  std::string_view take(uint64_t size) {
    if (size > static_cast<uint64_t>(end_ - at_))
      fail_at("a field that is longer than the rest of its message");
    const std::string_view bytes(at_, size);
    at_ += size;
    return bytes;
  }

  const char *at_, *end_, *file_;
  const std::string& name_;
};

StoredPiece read_piece(std::string_view message, const std::string& name, const char* file) {
  StoredPiece piece;
  WireReader reader(message, name, file);
  WireField field;
  while (reader.next(field)) {
    if (field.number == 1 && field.type == 2) piece.text = field.bytes;
    if (field.number == 2 && field.type == 5)
      std::memcpy(&piece.score, field.bytes.data(), sizeof piece.score);
    if (field.number == 3 && field.type == 0) {
      if (field.value < 1 || field.value > 6) reader.fail_at("a piece of unknown type");
      piece.type = static_cast<PieceType>(field.value);
    }
  }
  return piece;
}

void read_normaliser(std::string_view message, const std::string& name, const char* file) {
  WireReader reader(message, name, file);
  WireField field;
  while (reader.next(field))
    if (field.number == 2 && field.type == 2) check_character_map(field.bytes, name);
}

void check_piece(const StoredPiece& piece, size_t id, const std::string& name) {
  const auto fail_piece = [&](const char* found) {
    fail(ExitCode::model, name, ": piece ", id, " ", found, "; train the vocabulary again");
  };
  if (piece.text.empty()) fail_piece("is empty");
  if (piece.text.size() > Vocabulary::kMaxPieceBytes) fail_piece("is longer than 1,024 bytes");
  if (!is_utf8(piece.text)) fail_piece("is not UTF-8");
  if (piece.text.find('\0') != std::string_view::npos) fail_piece("contains a NUL byte");
  if (!(std::abs(piece.score) <= kMaxScore))
    fail_piece("has a score that is not between -1e7 and 1e7");

  if (piece.type == PieceType::byte && byte_of(piece.text) < 0)
    fail(ExitCode::model, name, ": piece ", id, " '", piece.text,
         "' has the type byte, expected a name such as <0xE2>; train the vocabulary again");
}

// Checks that the special pieces have the ids of Fovea.
void check_special_ids(const std::vector<StoredPiece>& pieces, const std::string& name) {
  for (size_t id = 0; id < pieces.size(); ++id) {
    const StoredPiece& piece = pieces[id];
    const auto expected_type = id == kUnk ? PieceType::unknown : PieceType::control;
    if (id < kSpecials)
      check(piece.text == kSpecialNames[id] && piece.type == expected_type, ExitCode::model, name,
            ": piece ", id, " is '", piece.text, "', expected ", kSpecialNames[id],
            "; train it with pad_id=0, bos_id=1, eos_id=2, unk_id=3");
    check(id < kSpecials || (piece.type != PieceType::unknown && piece.type != PieceType::control),
          ExitCode::model, name, ": piece ", id,
          " is a control or unknown piece, which only pieces 0 to 3 can be; train the vocabulary "
          "again");
  }
}

using PieceSet = std::unordered_set<std::string_view, TableHash>;

// Limits the number of user-defined pieces that are prefixes of each other. The library stores all
// pieces that match at one text position in an array of fixed size.
void check_nesting(const PieceSet& user_defined, const std::string& name) {
  constexpr int kMaxNesting = 32;
  for (const std::string_view piece : user_defined) {
    int prefixes = 0;
    for (size_t n = 1; n <= piece.size(); ++n)
      prefixes += user_defined.contains(piece.substr(0, n));
    check(prefixes <= kMaxNesting, ExitCode::model, name, ": user-defined piece '", piece,
          "' begins with more than ", kMaxNesting,
          " user-defined pieces; train with fewer of them");
  }
}

OrderedPiece read_ordered_piece(std::string_view message, const std::string& name,
                                const char* file) {
  OrderedPiece piece;
  WireReader reader(message, name, file);
  WireField field;
  while (reader.next(field)) {
    if (field.number == 1 && field.type == 2) piece.text = field.bytes;
    if (field.number != 2 || field.type != 0) continue;
    if (field.value >= std::size(kOrderRoles)) reader.fail_at("a piece of unknown role");
    piece.role = kOrderRoles[field.value];
  }
  return piece;
}

void check_order(const std::vector<OrderedPiece>& order, const std::string& name) {
  PieceSet seen;
  for (size_t id = 0; id < order.size(); ++id) {
    const OrderedPiece& piece = order[id];
    const auto fail_piece = [&](const char* found) {
      fail(ExitCode::model, name, ": id ", id, " ", found, "; import the model again");
    };
    if (piece.text.empty()) fail_piece("has an empty piece");
    if (piece.text.size() > Vocabulary::kMaxPieceBytes) fail_piece("is longer than 1,024 bytes");
    if (!is_utf8(piece.text)) fail_piece("is not UTF-8");
    if (piece.text.find('\0') != std::string_view::npos) fail_piece("contains a NUL byte");
    if (id < kSpecials && piece.text != kSpecialNames[id]) fail_piece("is not the special piece");
    if (piece.role == PieceRole::byte && byte_of(piece.text) < 0) fail_piece("is not a byte");
    if (!seen.insert(piece.text).second) fail_piece("has a piece that occurs twice");
  }
  check(order.empty() || order.size() > kSpecials, ExitCode::model, name,
        ": expected more than the four special pieces; import the model again");
}

SentencePieceFile read_sentencepiece(std::string_view bytes, const std::string& name) {
  check(!bytes.empty(), ExitCode::model, name, ": the file is empty; train the vocabulary again");
  SentencePieceFile file;
  WireReader reader(bytes, name, bytes.data());
  WireField field;
  while (reader.next(field)) {
    const bool is_order = field.number == kOrderField;
    if (field.number > 5 && !is_order) continue;
    if (field.type != 2) reader.fail_at("a part of the model that is not a message");
    if (is_order) file.order.push_back(read_ordered_piece(field.bytes, name, bytes.data()));
    if (field.number == 1) file.pieces.push_back(read_piece(field.bytes, name, bytes.data()));
    if (field.number == 3 || field.number == 5) read_normaliser(field.bytes, name, bytes.data());
    if (std::max(file.pieces.size(), file.order.size()) > kMaxPieces)
      reader.fail_at("more than 1,048,576 pieces");
  }
  check(file.pieces.size() > kSpecials, ExitCode::model, name, ": ", file.pieces.size(),
        " pieces, expected the four special pieces and at least one more; the file is truncated or "
        "not a SentencePiece model");

  PieceSet seen, user_defined;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const StoredPiece& piece = file.pieces[id];
    check_piece(piece, id, name);
    check(seen.insert(piece.text).second, ExitCode::model, name, ": piece ", id, " '", piece.text,
          "' occurs twice; train the vocabulary again");
    if (piece.type == PieceType::user_defined) user_defined.insert(piece.text);
  }
  check_nesting(user_defined, name);
  check_order(file.order, name);
  return file;
}

}  // namespace

SentencePieceFile check_sentencepiece(std::string_view bytes, const std::string& name) {
  SentencePieceFile file = read_sentencepiece(bytes, name);
  if (file.order.empty()) check_special_ids(file.pieces, name);
  return file;
}

SentencePieceFile check_foreign_sentencepiece(std::string_view bytes, const std::string& name) {
  SentencePieceFile file = read_sentencepiece(bytes, name);
  check(file.order.empty(), ExitCode::model, name,
        ": the file was imported before; import the original file");
  return file;
}

std::string with_order(std::string_view bytes, const std::vector<OrderedPiece>& order) {
  std::string result(bytes);
  for (const OrderedPiece& piece : order) {
    const auto role = std::ranges::find(kOrderRoles, piece.role) - kOrderRoles;
    std::string message = wire_field(1, piece.text);
    if (role > 0) message += wire_field(2, static_cast<uint64_t>(role));
    result += wire_field(kOrderField, message);
  }
  return result;
}

}  // namespace fovea
