#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// What a SentencePiece model file says about one piece; the numbers are those of the file.
enum class PieceType {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

struct StoredPiece {
  std::string_view text;  // into the file's bytes
  float score = 0;
  PieceType type = PieceType::normal;
};

// Takes a SentencePiece model file apart and refuses, with Exit::model, what the library would
// crash on, read out of bounds for or load into something else than it says: broken framing,
// overlong, doubled or non-UTF-8 pieces, non-finite scores, a damaged normalisation table,
// special pieces that are not <pad> <s> </s> <unk> at ids 0 to 3.
std::vector<StoredPiece> check_sentencepiece(std::string_view bytes, const std::string& name);

// Throws Exit::model unless no text can lead the walk through this normalisation table (a
// double-array trie followed by the replacements it points into) out of its bounds.
void check_character_map(std::string_view map, const std::string& name);

// The library behind a wall: nothing of it shows, it writes nothing to stderr.
class SentencePieceModel {
 public:
  struct Token {
    std::string text;  // as normalised, with "▁"
    int32_t id;
    size_t end;  // of what it stands for, in bytes of the line
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
