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

// The text with ASCII blanks in the place of all other Unicode spaces (no-break, thin,
// ideographic), one for each byte, so that offsets stay the same.
std::string plain_blanks(std::string text);

// The text with a blank put into runs of more than 16,384 bytes that have none. SentencePiece
// joins unknown characters in a row one by one, in quadratic time.
std::string break_runs(std::string text);

// Space, tab, LF, VT, FF and CR.
bool is_ascii_blank(char32_t c);

// The text between ASCII blanks, in any script; text_words() finds words of all scripts. Other
// Unicode spaces are characters of a word. The views point into `line`.
std::vector<std::string_view> split_words(std::string_view line);

// The code points of a line, each run of blanks as one "▁", none at either end.
std::vector<std::string_view> split_characters(std::string_view line);

// The words of text_words() with the ASCII punctuation at their beginning and end as pieces of
// their own: "(Mary's dog.)" is ( Mary's dog . ). Words like 's and .com stay whole.
std::vector<std::string_view> split_tokens(std::string_view line);

// The line as text is cut: canonical, and in lower case for tokens.
std::string prepared(Cut cut, std::string_view line);
// The pieces of such text, views into it: words and tokens are cut from text_words().
// REQUIRES: cut is not sentencepiece.
std::vector<std::string_view> split(Cut cut, std::string_view text);

// How a piece takes part in text.
enum class Role { text, unknown, control, byte };

struct Shown {
  std::string_view piece;
  Role role;
  unsigned char byte = 0;
};

// The text of pieces with "▁" as blanks, before blanks at its ends are removed, and where each
// piece begins in it. REQUIRES: pieces of SentencePiece or characters.
struct SpelledText {
  std::string text;
  std::vector<size_t> starts;
};
SpelledText spell(const std::vector<Shown>& pieces);

// The text that pieces stand for: see Vocabulary::decode. Words are joined by blanks, but
// not between two words of scripts without blanks, nor next to wide punctuation.
std::string join(Cut cut, const std::vector<Shown>& pieces);

// Whether a piece begins another word than the one before it.
bool begins_word(Cut cut, const Shown& before, const Shown& piece);

}  // namespace fovea
