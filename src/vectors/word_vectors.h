#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus.h"

namespace fovea {

// The format of a file of vectors (docs/formats.md). text: lines of a word and its numbers, with a
// first line "COUNT SIZE" (word2vec, fastText .vec) or without it (GloVe). binary: the binary
// format of word2vec. automatic: the beginning of the file decides.
enum class VectorFormat { automatic, text, binary };

// The options of reading vectors.
struct VectorReadOptions {
  VectorFormat format = VectorFormat::automatic;
  BadUtf8 bad_utf8 = BadUtf8::fail;  // for the bytes of words
  // If set, the reader keeps only words for which wanted(word) is true, which limits memory. It
  // still checks all words.
  std::function<bool(std::string_view word)> wanted = nullptr;
};

// The numbers of words that a reader read, kept and skipped.
// read == kept + unwanted + duplicates + bad_utf8.
struct VectorCounts {
  int64_t read = 0, kept = 0, unwanted = 0, duplicates = 0, bad_utf8 = 0;
  std::string first_duplicate, first_bad_utf8;  // "vectors.vec:4711", "vectors.bin, byte 4711"

  // Returns, for example, "kept 9,998 of 10,000 words: 2 duplicates (first vectors.vec:17)".
  std::string summary() const;
};

// A table of words and their vectors, all of the same size.
class WordVectors {
 public:
  static constexpr int64_t kMaxSize = 65'536;  // numbers in a vector
  static constexpr size_t kMaxWordBytes = 65'536;

  explicit WordVectors(int64_t size) : size_(size), slots_(16, -1) {}

  // Reads a file; text may be .gz. If a word occurs twice, keeps its first vector. Throws
  // ExitCode::data with file and line (or byte) for missing, extra or non-finite numbers, for
  // another number of words than in the first line, for empty words, and for words that are not
  // UTF-8 (unless options.bad_utf8 allows them). Memory use is bounded by the size of the file.
  static WordVectors read(const std::string& path, const VectorReadOptions& options = {});
  // Like read(), but from memory. Error messages use `name` as the name of the file.
  static WordVectors parse(std::string_view bytes, const std::string& name,
                           const VectorReadOptions& options = {});

  // Writes a file that read() can read, atomically. In text, numbers have the shortest digits that
  // give the same bits. Throws ExitCode::data for a word with a blank, because both formats
  // separate fields by blanks.
  void write(const std::string& path, VectorFormat format) const;

  // Adds a word; returns false if it already exists. REQUIRES: the vector has size() numbers.
  bool add(std::string_view word, std::span<const float> vector);

  int64_t words() const { return static_cast<int64_t>(ends_.size()); }
  int64_t size() const { return size_; }  // numbers in a vector
  std::string_view word(int64_t i) const;
  std::span<const float> vector(int64_t i) const;
  int64_t find(std::string_view word) const;  // -1 if there is no such word
  const VectorCounts& counts() const { return counts_; }

 private:
  friend class VectorSink;
  size_t slot_of(std::string_view word) const;
  void grow();

  int64_t size_;
  std::string text_;  // all words, concatenated
  std::vector<size_t> ends_;
  std::vector<float> values_;
  std::vector<int64_t> slots_;  // open-addressing hash table of the words
  VectorCounts counts_;
};

}  // namespace fovea
