#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenization.h"

namespace fovea {

// The type of a piece; the values are those of SentencePiece model files.
enum class PieceType {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

// A piece of a SentencePiece model file.
struct StoredPiece {
  std::string_view text;  // points into the bytes of the file
  float score = 0;
  PieceType type = PieceType::normal;
};

// A piece of an imported vocabulary: its text, and whether it is text, control or byte.
struct OrderedPiece {
  std::string_view text;
  PieceRole role = PieceRole::text;
};

// The content of a SentencePiece model file, as views of its bytes. `order` has the pieces of an
// imported model by id; it is empty for other models.
struct SentencePieceFile {
  std::vector<StoredPiece> pieces;
  std::vector<OrderedPiece> order;
};

// Parses a SentencePiece model file. Throws ExitCode::model for files on which the library would
// crash, read out of bounds, or load something else than the file says: damaged fields, overlong,
// duplicate or non-UTF-8 pieces, non-finite scores, a damaged normalisation table, or special
// pieces other than <pad> <s> </s> <unk> at ids 0 to 3.
SentencePieceFile check_sentencepiece(std::string_view bytes, const std::string& name);

// The same for the file of another program, which may have any special pieces but no `order`.
SentencePieceFile check_foreign_sentencepiece(std::string_view bytes, const std::string& name);

// A model file whose segmentation and normalisation are those of the file `bytes`, and whose ids
// are given by `order`. REQUIRES: check_foreign_sentencepiece accepted the bytes.
std::string with_order(std::string_view bytes, const std::vector<OrderedPiece>& order);

// Checks a normalisation table: a double-array trie and its replacements. Throws ExitCode::model if
// for some text the library would read or write out of bounds.
void check_character_map(std::string_view map, const std::string& name);

// A SentencePiece model. Hides the headers of the library and its output to stderr.
class SentencePieceModel {
 public:
  // A piece of an encoded line.
  struct Token {
    std::string text;  // the piece: normalised, blanks are "▁"
    int32_t id;
    size_t end;  // byte offset in the line where the text of the piece ends
  };

  // REQUIRES: check_sentencepiece accepted the bytes.
  SentencePieceModel(std::string_view bytes, const std::string& name);
  ~SentencePieceModel();

  std::vector<int32_t> encode(std::string_view line) const;
  std::vector<Token> tokens(std::string_view line) const;

 private:
  struct Library;
  std::unique_ptr<Library> library_;
};

}  // namespace fovea
