#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

// The names of the special pieces in the vocabulary of another program; "" if it has no such piece.
struct SpecialNames {
  std::string pad, bos, eos, unk;
};

// The pieces of an imported vocabulary in the order of Fovea's ids: the four special pieces, then
// the other pieces in their original order.
struct PieceOrder {
  struct Piece {
    std::string name;
    bool control = false;  // never matches text, and decoded text omits it
  };
  std::vector<Piece> pieces;
  std::vector<int32_t> rows;  // the original id of each piece; -1 for a special piece without one
};

// Orders the pieces `names`, which are given by original id. `controls` names the pieces that are
// not text, such as "__de__". A special piece is <pad>, <s>, </s> or <unk> in the result. A name
// that is empty, occurs before, or is that of another special piece becomes the control piece
// "<row-N>", where N is the original id. Throws ExitCode::model if a special name does not occur.
PieceOrder order_pieces(std::span<const std::string> names, const SpecialNames& specials,
                        std::span<const std::string> controls, const std::string& file);

// A SentencePiece model of another program whose ids are those of `order`. Text has the same pieces
// as with the original model, without Fovea's own normalisation. The id of a piece depends on its
// name only; a name that `order` lacks has the id of <unk>. The text of an unknown piece has an id
// if it is the name of a piece. Errors use `name` as the name of the file.
Vocabulary import_sentencepiece(std::string_view model, const PieceOrder& order,
                                const std::string& name);

// The names of the pieces of a SentencePiece model by id.
std::vector<std::string> sentencepiece_names(std::string_view model, const std::string& name);

}  // namespace fovea
