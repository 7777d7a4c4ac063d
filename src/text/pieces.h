#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

inline constexpr std::string_view kBlank = "\u2581";    // ▁, a blank inside pieces
inline constexpr std::string_view kGlue = "@@";         // ends a piece that the next one continues
inline constexpr std::string_view kUnknown = "\u2047";  // ⁇, what <unk> looks like in text

// NFC, with U+2581 made a blank: what every way of cutting starts from. Costs little for ASCII.
std::string canonical(std::string_view line);

// The text with a blank put into runs of more than 16,384 bytes that have none. SentencePiece
// joins unknown characters in a row one by one, in quadratic time.
std::string break_runs(std::string text);

// What stands between ASCII blanks (space, tab, LF, VT, FF, CR). Other Unicode spaces are
// characters of a word. The views point into `line`.
std::vector<std::string_view> split_words(std::string_view line);

// The code points of a line, each run of blanks as one "▁", none at either end.
std::vector<std::string_view> split_characters(std::string_view line);

// Words with the punctuation at their beginning and end as pieces of their own: "(Mary's dog.)" is
// ( Mary's dog . ). What an apostrophe or a point begins ('s, .com) stays whole.
std::vector<std::string_view> split_tokens(std::string_view line);

// The line as text is cut: canonical, and in lower case for tokens.
std::string prepared(Cut cut, std::string_view line);
// The pieces of such text, views into it. REQUIRES: cut is not sentencepiece.
std::vector<std::string_view> split(Cut cut, std::string_view text);

// How a piece takes part in text.
enum class Role { text, unknown, control, byte };

struct Shown {
  std::string_view piece;
  Role role;
  unsigned char byte = 0;
};

// The text that pieces stand for: see Vocabulary::decode.
std::string join(Cut cut, const std::vector<Shown>& pieces);

// Whether a piece begins another word than the one before it.
bool begins_word(Cut cut, const Shown& before, const Shown& piece);

}  // namespace fovea
