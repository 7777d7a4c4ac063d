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

// A vocabulary for text that is already cut into pieces, which blanks separate: fairseq and Marian
// without a segmentation. "@@" at the end of a piece joins the next one.
Vocabulary import_pieces(const PieceOrder& order, const std::string& name);

// A vocabulary with the merges of subword-nmt's `codes` file. Like subword-nmt and fairseq, it does
// not normalise text, and Moses tokenization is not part of it.
Vocabulary import_subword_nmt(std::string_view codes, const PieceOrder& order,
                              const std::string& name);

// The pieces of a Hugging Face tokenizer.json by id, with its added tokens.
struct TokenizerPieces {
  std::vector<std::string> names;
  std::vector<std::string> controls;  // the added tokens that are special
};
TokenizerPieces tokenizer_pieces(std::string_view json, const std::string& name);

// The vocabulary of a tokenizer.json: models Unigram and BPE with Metaspace become SentencePiece,
// BPE with ByteLevel is Segmentation::bytes. Throws ExitCode::model with the name of a model,
// normalizer or pre_tokenizer that is not supported. Added tokens do not match text.
Vocabulary import_tokenizer_json(std::string_view json, const PieceOrder& order,
                                 const std::string& name);

// The names of pieces by id, "" for an id without a piece. Throws ExitCode::model for damaged
// files.
//   sentencepiece_names  a SentencePiece model
//   json_names           {"piece": id, …} (Hugging Face, Marian) or ["piece", …] (CTranslate2)
//   line_names           a piece per line (CTranslate2, Marian)
//   marian_names         `piece: id` per line (YAML), or JSON
//   fairseq_names        dict.txt, with <s>, <pad>, </s>, <unk> before its first symbol
std::vector<std::string> sentencepiece_names(std::string_view model, const std::string& name);
std::vector<std::string> json_names(std::string_view json, const std::string& name);
std::vector<std::string> line_names(std::string_view text, const std::string& name);
std::vector<std::string> marian_names(std::string_view yaml, const std::string& name);
std::vector<std::string> fairseq_names(std::string_view dict, const std::string& name);

}  // namespace fovea
