// The input is two files, divided at the first 0xFE. Reading them as parallel text either fails
// with a data error or counts every line once. Then batches have every pair once.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/check.h"
#include "base/utf8.h"
#include "text/batch.h"

namespace {

using namespace fovea;

void require(bool ok) {
  if (!ok) std::abort();
}

int64_t lines_in(std::string_view bytes) {
  const int64_t ends = std::count(bytes.begin(), bytes.end(), '\n');
  return ends + (!bytes.empty() && bytes.back() != '\n');
}

void check_batches(const Corpus& corpus) {
  const BatchPlan plan(corpus, {.tokens = 16}, 1);
  std::vector<bool> seen(corpus.size(), false);
  for (int64_t i = 0; i < plan.size(); ++i)
    for (const int64_t pair : plan.members(i)) {
      require(!seen[pair]);
      seen[pair] = true;
    }
  require(std::count(seen.begin(), seen.end(), true) == corpus.size());
}

void check_clean(std::string_view bytes) {
  const CleanLine line = clean_line(bytes, 32);
  require(is_utf8(line.text) && line.text.find_first_of("\n\r") == line.text.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Vocabulary vocabulary =
      Vocabulary::from_entries(Segmentation::words, {{"a", 1}, {"the", 1}, {"\u00E9", 1}});
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const size_t middle = std::min(bytes.find('\xFE'), bytes.size());
  const std::string_view first = bytes.substr(0, middle);
  const std::string_view second = bytes.substr(std::min(middle + 1, bytes.size()));
  check_clean(first);
  CorpusOptions options;
  options.max_length = 8;
  options.max_bytes = 64;
  options.bad_utf8 = static_cast<BadUtf8>(size % 3);
  try {
    LineReader source = LineReader::over(first, "source", 64);
    LineReader target = LineReader::over(second, "target", 64);
    Corpus corpus;
    corpus.read(source, target, vocabulary, vocabulary, options);
    const CorpusCounts& c = corpus.counts();
    require(c.read == c.kept + c.empty + c.too_long + c.bad_utf8 + c.ratio);
    require(c.byte_order_marks > 0 || c.read == lines_in(first));
    require(c.kept == corpus.size());
    c.summary();
    check_batches(corpus);
  } catch (const Error& error) {
    require(error.code() == ExitCode::data);
  }
  return 0;
}
