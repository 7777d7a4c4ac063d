#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

// The training text of word vectors, in memory: words of one language and their ids. Rare words are
// removed, so that the words around them become adjacent.
struct WordStream {
  std::vector<std::string> words;  // by descending frequency, then in byte order
  std::vector<int64_t> counts;     // occurrences of each word
  std::vector<int32_t> ids;
  std::vector<int64_t> offsets{0};     // sentence i is ids[offsets[i] … offsets[i + 1])
  int64_t lines = 0, rare = 0;         // lines that were read; occurrences of removed words
  int64_t bad_utf8 = 0, too_long = 0;  // lines skipped

  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }
  std::span<const int32_t> sentence(int64_t i) const {
    return std::span(ids).subspan(offsets[i], offsets[i + 1] - offsets[i]);
  }
  std::string summary() const;  // such as "9 words, 3 different, in 5 lines; 1 too rare"
};

// The options of reading text for word vectors.
struct WordStreamOptions {
  static constexpr size_t kMaxLine = size_t{1} << 27;  // bytes; longer lines are skipped
  static constexpr int64_t kMaxSentence =
      1000;  // in words; longer lines are split into several sentences

  int64_t min_count = 5;
  // If set, lines are split into the pieces of this vocabulary instead of words.
  const Vocabulary* vocabulary = nullptr;
  std::function<std::string(std::string_view line)> prepare = nullptr;  // changes a line first
  std::function<void(int64_t lines)> progress = nullptr;                // called every 10,000 lines
};

// Reads files once: plain, .gz or "-". Throws ExitCode::data if no word is frequent enough.
WordStream read_words(const std::vector<std::string>& files, const WordStreamOptions& options = {});

}  // namespace fovea
