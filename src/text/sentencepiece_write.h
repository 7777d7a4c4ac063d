#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "text/sentencepiece_model.h"

namespace fovea {

// The fields of a SentencePiece model file that determine the pieces of a text.
struct SentencePieceParts {
  enum class Model { unigram = 1, bpe = 2 };

  Model model = Model::unigram;
  std::vector<StoredPiece> pieces;  // views that outlive the parts
  std::string character_map;        // the normalisation table; see check_character_map()
  bool byte_fallback = false;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
};

// The bytes of a model file with these fields.
std::string write_sentencepiece(const SentencePieceParts& parts);

// The encoding of a field of a protocol buffer message: counted bytes, or a number.
std::string wire_field(uint64_t number, std::string_view bytes);
std::string wire_field(uint64_t number, uint64_t value);

}  // namespace fovea
