#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The first four ids of every vocabulary. Text encodes to none of them except kUnk.
inline constexpr int32_t kPad = 0;  // <pad>
inline constexpr int32_t kBos = 1;  // <s>
inline constexpr int32_t kEos = 2;  // </s>
inline constexpr int32_t kUnk = 3;  // <unk>
inline constexpr int32_t kSpecials = 4;

// The way in which text is split into pieces:
//   sentencepiece  the pieces of a SentencePiece model
//   words          words between blanks
//   characters     single code points
//   pieces         text that is already split; "@@" at the end joins a piece to the next one
//   tokens         words in lower case, with the punctuation around them split off
//   subwords       imported: words between blanks, cut by the merges of subword-nmt, with "@@"
//   bytes          imported: the bytes of GPT-2's words, joined by merges
// Scripts without blanks (Han, Kana, Thai, Lao, Khmer, Myanmar) also have words and tokens: see
// text/word_breaks.h.
enum class Segmentation { sentencepiece, words, characters, pieces, tokens, subwords, bytes };

// Returns "sentencepiece", "words", "characters", "pieces", "tokens", "subword-nmt" or "byte-bpe".
const char* name_of(Segmentation segmentation);

// Counts of the units of a text for which a vocabulary has pieces or not. A unit is a character
// other than a blank or, if the vocabulary has whole words, a word.
struct VocabularyCoverage {
  int64_t units = 0;
  int64_t unknown = 0;                // units without a piece: the model reads <unk>
  int64_t spelt = 0;                  // units without a piece that byte pieces spell
  std::vector<std::string> examples;  // distinct unknown and spelt units, at most five
  std::vector<std::string> missing;   // all unknown and spelt units, in order; not set by add()

  void add(const VocabularyCoverage& other);
};

// A vocabulary: pieces of text and their ids. A value type: copies are cheap and share the loaded
// data. The data is immutable, so that several threads can use one vocabulary at the same time.
//
// Text is first converted to NFC, so that NFC and NFD spellings have the same ids. "▁" (U+2581),
// which represents a blank inside pieces, becomes a blank. Bytes that are not UTF-8 become U+FFFD.
// For SentencePiece, every Unicode space becomes a blank, and words of more than 16,384 bytes are
// split by blanks.
class Vocabulary {
 public:
  // A piece of a text vocabulary.
  struct Entry {
    std::string piece;
    int64_t count;  // occurrences in the training text; 0 if unknown
  };

  static constexpr size_t kMaxPieceBytes = 1024;  // longer words become <unk>

  // Makes a vocabulary of only the four special pieces.
  Vocabulary();

  // Reads `*.spm` and `*.model` as SentencePiece, other files as vocab.txt (docs/formats.md).
  // Throws ExitCode::model with file and line (or piece) if the file is damaged.
  static Vocabulary load(const std::string& path);

  // Like load(), but from memory. Error messages use `name` as the name of the file.
  static Vocabulary parse_text(std::string_view bytes, const std::string& name);
  static Vocabulary parse_foreign_text(std::string_view bytes, const std::string& name);
  static Vocabulary parse_sentencepiece(std::string_view bytes, const std::string& name);

  // Entry i gets id kSpecials + i. REQUIRES: segmentation is not sentencepiece.
  static Vocabulary from_entries(Segmentation segmentation, const std::vector<Entry>& entries);

  // A copy with further pieces behind the others, which keep their ids. Pieces that the vocabulary
  // already has are omitted. For SentencePiece they are user-defined: text is split at them first.
  // Throws ExitCode::data for a piece that is empty, has a blank or is not UTF-8.
  Vocabulary with_pieces(const std::vector<std::string>& pieces) const;

  // A copy that replaces characters without a piece by their compatibility forms (NFKC) if these
  // have pieces: "ﬁ" becomes "fi", "㎞" becomes "km". Forms that would change the meaning or the
  // number of words are not used: "4²" stays. Use this copy for translation; training uses the text
  // as it is.
  Vocabulary with_compatible_characters() const;

  // Writes a file that load() can read, atomically. The name should end with extension().
  void save(const std::string& path) const;
  const char* extension() const;  // ".spm" or ".txt"

  Segmentation cut() const;
  int32_t size() const;  // including the special pieces

  // The piece of an id; "<unk>" if id is out of range.
  std::string_view name(int32_t id) const;
  int64_t count(int32_t id) const;

  // The id of a piece, or kUnk if there is no such piece. Also finds the names of special pieces,
  // so do not use it for words of a text.
  int32_t id(std::string_view piece) const;

  // Encodes a line, without <s> and </s>; empty for an empty or blank line.
  std::vector<int32_t> encode(std::string_view line) const;

  // The text of each id of encode(line) as it is in the line, also for unknown words. For a
  // SentencePiece model, the result is the pieces.
  std::vector<std::string> spelt(std::string_view line) const;

  // Counts of the units of the line for which encode() finds pieces or not.
  VocabularyCoverage coverage(std::string_view line) const;
  bool has_whole_words() const;  // if true, the units of coverage() are words

  // The text that decode(encode(line)) would give if the vocabulary had all pieces of the line.
  std::string normalise(std::string_view line) const;

  // One string per id: the piece as it is in the vocabulary (with "▁" or "@@").
  std::vector<std::string> pieces(std::span<const int32_t> ids) const;

  // Joins the pieces of ids to text, without <pad>, <s> and </s>, and with "⁇" for <unk>. Byte
  // pieces that form no character are omitted. The result is valid UTF-8 without line ends.
  std::string decode(std::span<const int32_t> ids) const;

  // The index of the word of each id, from 0. <pad>, <s> and </s> are separate words; an unknown
  // character is part of the word around it. In scripts without blanks, a word boundary inside a
  // piece does not count: all words that share a piece count as one word.
  std::vector<int> words_of(std::span<const int32_t> ids) const;

  // Like words_of(), but the words are those of text_words(decode(ids)). The results differ if a
  // piece is part of several words. The piece then belongs to the word in which it starts, and the
  // other words may have no piece. REQUIRES: the only control piece is </s> at the end. Its word
  // index is the number of words.
  std::vector<int> text_words_of(std::span<const int32_t> ids) const;

  // The index of the word of each id of encode(line), followed by the number of words. The words
  // are text_words(line) or, for Segmentation::pieces, pieces joined at "@@". A word may have no
  // piece.
  std::vector<int> words_in(std::string_view line) const;

  // The words of words_of() as text for display; control pieces have their names.
  std::vector<std::string> words(std::span<const int32_t> ids) const;
  // Like words(ids), where ids = encode(line). A word with an unknown piece is copied from the
  // line.
  std::vector<std::string> words(std::span<const int32_t> ids, std::string_view line) const;

  // A hash of the pieces, their order and the segmentation.
  uint64_t fingerprint() const;

 private:
  struct Table;
  std::string prepare(std::string_view line) const;  // the input of split() or SentencePiece
  std::string with_known_characters(std::string_view text) const;
  std::string with_known_words(std::string_view text) const;
  std::vector<std::string> written_words(std::string_view line) const;
  explicit Vocabulary(std::shared_ptr<const Table> table);
  std::shared_ptr<const Table> table_;
  bool compatible_ = false;  // see with_compatible_characters()
};

}  // namespace fovea
