#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/corpus.h"

namespace fovea {

// How vectors stand in a file (docs/formats.md): lines of a word and its numbers, with or without
// "COUNT SIZE" in front (word2vec and fastText .vec with it, GloVe without), or word2vec's binary
// form. `automatic` looks at the file's beginning.
enum class VectorFormat { automatic, text, binary };

struct VectorReadOptions {
  VectorFormat format = VectorFormat::automatic;
  BadUtf8 bad_utf8 = BadUtf8::fail;  // of words
  // Only words it says yes to are kept; all are checked. Bounds memory by what is wanted.
  std::function<bool(std::string_view word)> wanted = nullptr;
};

// What the reader saw. read == kept + unwanted + duplicates + bad_utf8.
struct VectorCounts {
  int64_t read = 0, kept = 0, unwanted = 0, duplicates = 0, bad_utf8 = 0;
  std::string first_duplicate, first_bad_utf8;  // "vectors.vec:4711" or "vectors.bin, byte 4711"

  // "kept 9,998 of 10,000 words: 2 there before (first vectors.vec:17)"
  std::string summary() const;
};

// Words, each with a vector of the same size.
class WordVectors {
 public:
  static constexpr int64_t kMaxSize = 65'536;  // numbers in a vector
  static constexpr size_t kMaxWordBytes = 65'536;

  explicit WordVectors(int64_t size) : size_(size), slots_(16, -1) {}

  // Reads a file; text may be .gz. Of a word that is there twice the first vector counts. Throws
  // Exit::data naming file and line, or byte, where a number is missing, too many or not finite,
  // where the file ends early or holds more than its first line says, and where a word is empty or
  // (unless otherwise wanted) not UTF-8. Takes no memory that the file's length does not warrant.
  static WordVectors read(const std::string& path, const VectorReadOptions& options = {});
  // The same from memory; `name` is what errors call it.
  static WordVectors parse(std::string_view bytes, const std::string& name,
                           const VectorReadOptions& options = {});

  // Writes what read reads, whole or not at all; text as short as gives back the same bits. Throws
  // Exit::data for a word that holds a blank, which neither format can tell from two words.
  void write(const std::string& path, VectorFormat format) const;

  // False where the word is there already. REQUIRES: as many numbers as size().
  bool add(std::string_view word, std::span<const float> vector);

  int64_t words() const { return static_cast<int64_t>(ends_.size()); }
  int64_t size() const { return size_; }  // numbers in a vector
  std::string_view word(int64_t i) const;
  std::span<const float> vector(int64_t i) const;
  int64_t find(std::string_view word) const;  // -1 where it is none
  const VectorCounts& counts() const { return counts_; }

 private:
  friend class VectorSink;
  size_t slot_of(std::string_view word) const;
  void grow();

  int64_t size_;
  std::string text_;  // all words, one after another
  std::vector<size_t> ends_;
  std::vector<float> values_;
  std::vector<int64_t> slots_;  // open addressing over the words
  VectorCounts counts_;
};

}  // namespace fovea
