#pragma once

#include <string>
#include <string_view>

#include "base/lines.h"
#include "vectors/word_vectors.h"

namespace fovea {

// The two readers of WordVectors::read(), and the function that chooses between them.

// Returns whether the first vector has bytes that do not occur in text files.
bool looks_binary(std::string_view bytes);

// Reads vectors in text format. `bytes` is the size of the file, or 0 if it is unknown.
WordVectors read_text_vectors(LineReader& lines, size_t bytes, const VectorReadOptions& options);

WordVectors read_binary_vectors(std::string_view bytes, const std::string& name,
                                const VectorReadOptions& options);

// Adds words to vectors and counts the kept and skipped words.
class VectorSink {
 public:
  VectorSink(WordVectors& vectors, const VectorReadOptions& options)
      : vectors_(vectors), options_(options) {}

  // Adds a word unless it is unwanted or a duplicate. `where` is the location for error messages.
  void add(std::string_view word, std::span<const float> values, const std::string& where);
  void reserve(int64_t words);

 private:
  WordVectors& vectors_;
  const VectorReadOptions& options_;
};

}  // namespace fovea
