#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

inline constexpr std::string_view kBlank = "\u2581";  // ▁, a blank inside pieces
inline constexpr std::string_view kGlue = "@@";  // suffix of a piece that the next piece continues
inline constexpr std::string_view kByteBlank = "\u0120";  // Ġ, GPT-2's character for a blank
inline constexpr std::string_view kUnknown = "\u2047";    // ⁇, <unk> in decoded text

// Converts a line to NFC and each U+2581 to a blank. This is the input of every segmentation. Fast
// for ASCII.
std::string canonical(std::string_view line);

// Replaces each byte of every Unicode space that is not ASCII (no-break, thin, ideographic) by an
// ASCII blank. So offsets do not change.
std::string plain_blanks(std::string text);

// Inserts blanks into sequences of more than 16,384 bytes without a blank, because SentencePiece
// joins consecutive unknown characters in quadratic time.
std::string break_runs(std::string text);

// Returns the code points of a line. A sequence of blanks becomes one "▁"; blanks at the ends are
// dropped.
std::vector<std::string_view> split_characters(std::string_view line);

// Splits off the ASCII punctuation at the beginning and end of the words of text_words():
// "(Mary's dog.)" becomes ( Mary's dog . ). A word such as 's or .com stays whole.
std::vector<std::string_view> split_tokens(std::string_view line);

// Prepares a line for split(): makes it canonical() and, for Segmentation::tokens, lower case.
std::string prepared(Segmentation segmentation, std::string_view line);
// Splits prepared text into pieces, which are views into the text. Words and tokens come from
// text_words(). REQUIRES: segmentation is not sentencepiece.
std::vector<std::string_view> split(Segmentation segmentation, std::string_view text);

// The role of a piece in text.
enum class PieceRole { text, unknown, control, byte };

// A piece and its role in text.
struct PieceText {
  std::string_view piece;
  PieceRole role;
  unsigned char byte = 0;
};

// The text of pieces, with blanks instead of "▁", and the offset at which each piece begins. Byte
// pieces that form no character are omitted. Blanks at both ends of the text are kept. REQUIRES:
// the segmentation is sentencepiece or characters.
struct SpelledText {
  std::string text;
  std::vector<size_t> starts;
};
SpelledText spell(Segmentation segmentation, const std::vector<PieceText>& pieces);

// Joins pieces to text: see Vocabulary::decode. Blanks separate words, but not two words of scripts
// without blanks, and not next to wide punctuation.
std::string join(Segmentation segmentation, const std::vector<PieceText>& pieces);

// Returns whether a piece begins a new word, given the piece before it.
bool begins_word(Segmentation segmentation, const PieceText& before, const PieceText& piece);

}  // namespace fovea
