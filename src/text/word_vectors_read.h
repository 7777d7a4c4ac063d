#pragma once

#include <string>
#include <string_view>

#include "base/lines.h"
#include "text/word_vectors.h"

namespace fovea {

// The two readers behind WordVectors::read, and how it chooses.

// Whether bytes that a text file would not hold stand where the first vector stands.
bool looks_binary(std::string_view bytes);

// `bytes` is the length of the file, 0 where it is not known.
WordVectors read_text_vectors(LineReader& lines, size_t bytes, const VectorReadOptions& options);

WordVectors read_binary_vectors(std::string_view bytes, const std::string& name,
                                const VectorReadOptions& options);

// Takes word after word into vectors and counts what becomes of them.
class VectorSink {
 public:
  VectorSink(WordVectors& vectors, const VectorReadOptions& options)
      : vectors_(vectors), options_(options) {}

  // `where` is what errors say about the place of the word. Nothing is taken of a word that is not
  // wanted or there already.
  void take(std::string_view word, std::span<const float> values, const std::string& where);
  void reserve(int64_t words);

 private:
  WordVectors& vectors_;
  const VectorReadOptions& options_;
};

}  // namespace fovea
