// Any file of word vectors is refused as bad data or is usable. Each word is UTF-8 and is found at
// its index, and each number is finite. The first byte selects the format.
#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "base/check.h"
#include "base/utf8.h"
#include "vectors/word_vectors.h"

namespace {

using namespace fovea;

void require(bool ok) {
  if (!ok) std::abort();
}

void use(const WordVectors& vectors) {
  const VectorCounts& counts = vectors.counts();
  require(counts.read == counts.kept + counts.unwanted + counts.duplicates + counts.bad_utf8);
  require(counts.kept == vectors.words());
  for (int64_t i = 0; i < vectors.words(); ++i) {
    require(!vectors.word(i).empty() && is_utf8(vectors.word(i)));
    require(vectors.find(vectors.word(i)) == i);
    require(static_cast<int64_t>(vectors.vector(i).size()) == vectors.size());
    for (const float x : vectors.vector(i)) require(std::isfinite(x));
  }
  require(!counts.summary().empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  VectorReadOptions options;
  options.format = static_cast<VectorFormat>(data[0] % 3);
  options.bad_utf8 = static_cast<BadUtf8>(data[0] / 3 % 3);
  try {
    use(WordVectors::parse(bytes, "vectors", options));
  } catch (const Error& error) {
    require(error.code() == ExitCode::data);
  }
  return 0;
}
