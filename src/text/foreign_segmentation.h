#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "text/pair_merges.h"

namespace fovea {

// The way in which another program cuts a line into the pieces of its vocabulary:
//   pieces       the words between blanks, for text that is already cut
//   subword_nmt  the words between blanks, cut by merges; "@@" marks pieces inside words
//   byte_bpe     GPT-2's words, as bytes, cut by merges; "Ġ" is a blank
enum class ForeignCut { pieces, subword_nmt, byte_bpe };

// A segmentation of another program, without normalisation.
struct ForeignSegmentation {
  ForeignCut cut = ForeignCut::pieces;
  // subword_nmt: the last character of a word and "</w>" are two symbols (version 0.1 of the file).
  bool split_end = false;
  bool prefix_blank = false;  // byte_bpe: a blank is added before the text
  std::shared_ptr<const PairMerges> merges = nullptr;

  // The pieces of a line of valid UTF-8, as they are named in the vocabulary.
  std::vector<std::string> pieces(std::string_view line) const;
};

// The words between the characters that Python's str.split() removes: all Unicode spaces and the
// controls U+001C to U+001F.
std::vector<std::string_view> python_words(std::string_view line);

// The words of GPT-2's regular expression. Together they are the line.
std::vector<std::string_view> gpt2_words(std::string_view line);

// GPT-2's characters for bytes: printable Latin letters for themselves, others from U+0100.
std::string byte_characters(std::string_view bytes);
// The bytes of such characters; other characters are their own UTF-8.
std::string bytes_of_characters(std::string_view text);

}  // namespace fovea
