#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

// Text of one language as numbers of words, in memory: what word vectors are learnt from. Words
// that are too rare are not there at all, so that those around them become neighbours.
struct WordStream {
  std::vector<std::string> words;  // the most frequent first, equal ones in byte order
  std::vector<int64_t> counts;     // of each word
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets{0};     // sentence i is ids[offsets[i] … offsets[i + 1])
  int64_t lines = 0, rare = 0;         // lines read; words left out, each time they were seen
  int64_t bad_utf8 = 0, too_long = 0;  // lines skipped

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::span<const int32_t> sentence(int64_t i) const {
    return std::span(ids).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
  std::string summary() const;  // "4,512,003 words of 21,044 in 200,000 lines; 1 line of bad UTF-8"
};

struct WordStreamOptions {
  static constexpr size_t kMaxLine = size_t{1} << 27;  // bytes; longer lines are skipped
  static constexpr int64_t kMaxSentence = 1000;        // words; longer lines are cut in several

  int64_t min_count = 5;
  // Cuts lines into the pieces of a vocabulary, instead of at blanks.
  const Vocabulary* vocabulary = nullptr;
  std::function<std::string(std::string_view line)> prepare = nullptr;  // lower case, say
  std::function<void(int64_t lines)> progress = nullptr;                // called now and then
};

// Reads files once, plain, .gz or "-". Exit::data where no word is frequent enough.
WordStream read_words(const std::vector<std::string>& files, const WordStreamOptions& options = {});

}  // namespace fovea
