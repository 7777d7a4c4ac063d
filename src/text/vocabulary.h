#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The first four ids of every vocabulary. No text is ever encoded to one of them but kUnk.
inline constexpr int32_t kPad = 0;  // <pad>
inline constexpr int32_t kBos = 1;  // <s>
inline constexpr int32_t kEos = 2;  // </s>
inline constexpr int32_t kUnk = 3;  // <unk>
inline constexpr int32_t kSpecials = 4;

// How text is cut: a SentencePiece model, words between blanks, single code points, pieces that
// somebody else has already cut, where "@@" at the end glues a piece to the next one, or tokens:
// words in lower case with the punctuation around them split off. Scripts without blanks (Han,
// Kana, Thai, Lao, Khmer, Myanmar) have words and tokens as well: see text/word_breaks.h.
enum class Cut { sentencepiece, words, characters, pieces, tokens };

// "sentencepiece", "words", "characters", "pieces", "tokens".
const char* name_of(Cut cut);

// How much of a text a vocabulary has pieces for. Units are the characters of the text without
// blanks, or its words where the vocabulary has whole words.
struct Coverage {
  int64_t units = 0;
  int64_t unknown = 0;                // in no piece: the model sees <unk>
  int64_t spelt = 0;                  // known byte by byte only
  std::vector<std::string> examples;  // of unknown and spelt units, each once, at most five

  void add(const Coverage& other);
};

// Pieces and their numbers. A value: copies are cheap and share what was loaded, which never
// changes, so one vocabulary may be used by many threads at once.
//
// Before it is cut, text is brought to NFC and "▁" (U+2581), which stands for a blank inside
// pieces, becomes a blank; so NFC and NFD spellings give the same ids. Bytes that are not UTF-8
// become U+FFFD. SentencePiece sees a blank for every Unicode space, and inside words of more than
// 16,384 bytes.
class Vocabulary {
 public:
  struct Entry {
    std::string piece;
    int64_t count;  // how often it was seen; 0 where nobody counted
  };

  static constexpr size_t kMaxPieceBytes = 1024;  // longer words are unknown ones

  // The four special pieces alone.
  Vocabulary();

  // Reads `*.spm` and `*.model` as SentencePiece, all else as vocab.txt (docs/formats.md).
  // Throws Exit::model naming file and line (piece) where the file is damaged.
  static Vocabulary load(const std::string& path);

  // As load, from memory; `name` is what errors call it.
  static Vocabulary parse_text(std::string_view bytes, const std::string& name);
  static Vocabulary parse_sentencepiece(std::string_view bytes, const std::string& name);

  // Entry i becomes id kSpecials + i. `cut` is not sentencepiece.
  static Vocabulary from_entries(Cut cut, const std::vector<Entry>& entries);

  // Writes what load reads, whole or not at all. The name should end with extension().
  void save(const std::string& path) const;
  const char* extension() const;  // ".spm" or ".txt"

  Cut cut() const;
  int32_t size() const;  // with the specials

  // The piece of an id; "<unk>" where id is out of range.
  std::string_view name(int32_t id) const;
  int64_t count(int32_t id) const;

  // The id of a piece, kUnk where it is none. Special names are found too: this is for
  // programs, not for text.
  int32_t id(std::string_view piece) const;

  // The line as ids, without <s> and </s>; empty for an empty or blank line.
  std::vector<int32_t> encode(std::string_view line) const;

  // What each id of encode(line) stands for as it is written there, known or not; of a
  // SentencePiece model, the pieces.
  std::vector<std::string> spelt(std::string_view line) const;

  // How much of the line encode() finds pieces for.
  Coverage coverage(std::string_view line) const;
  bool has_whole_words() const;  // whether units of coverage() are words

  // What decode(encode(line)) gives where no piece is unknown.
  std::string normalise(std::string_view line) const;

  // One string per id, as stored (with "▁" or "@@").
  std::vector<std::string> pieces(std::span<const int32_t> ids) const;

  // The text of ids: pieces joined, <pad>, <s>, </s> left out, <unk> written as "⁇". Always
  // valid UTF-8 without line ends.
  std::string decode(std::span<const int32_t> ids) const;

  // The number of the word each id belongs to, counted from 0. <pad>, <s> and </s> are words of
  // their own; an unknown character is part of the word it stands in. In scripts without blanks a
  // word boundary inside a piece does not count: the piece joins the words that it is part of.
  std::vector<int> words_of(std::span<const int32_t> ids) const;

  // As words_of, in words of the text: text_words(decode(ids)). They differ if a piece is part of
  // several words: it belongs to the one in which it starts, and the others may have no piece.
  // REQUIRES: no control pieces but </s> at the end, whose number is the number of words.
  std::vector<int> text_words_of(std::span<const int32_t> ids) const;

  // The number of the word that each id of encode(line) belongs to, as the line is written, and
  // after them the number of words. Words are text_words(line), or, if pieces were cut
  // beforehand, what "@@" glues together. A word may have no piece.
  std::vector<int> words_in(std::string_view line) const;

  // The words that words_of counts, as they should be shown; control pieces by their names.
  std::vector<std::string> words(std::span<const int32_t> ids) const;
  // The same of the ids of a line: a word with an unknown piece as the line has it.
  std::vector<std::string> words(std::span<const int32_t> ids, std::string_view line) const;

  // Changes with any piece, its place or the way of cutting.
  uint64_t fingerprint() const;

 private:
  struct Table;
  std::vector<std::string> written_words(std::string_view line) const;
  explicit Vocabulary(std::shared_ptr<const Table> table);
  std::shared_ptr<const Table> table_;
};

}  // namespace fovea
