#include "vectors/word_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "base/check.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/sip_hash.h"
#include "base/utf8.h"
#include "text/tokenization.h"
#include "text/word_breaks.h"

namespace fovea {
namespace {

constexpr int64_t kReportEvery = 10'000;

// A table of words, numbered in the order of their first occurrence.
class WordTable {
 public:
  int32_t id(std::string_view word) {
    if (const auto known = ids_.find(word); known != ids_.end()) return known->second;
    check(ids_.size() < std::numeric_limits<int32_t>::max(), ExitCode::data,
          "the text has more than 2,147,483,647 ", "distinct words; give less text");
    const auto id = static_cast<int32_t>(words_.size());
    words_.push_back(&ids_.emplace(word, id).first->first);
    return id;
  }
  int32_t size() const { return static_cast<int32_t>(words_.size()); }
  const std::string& word(int32_t id) const { return *words_[id]; }

 private:
  std::unordered_map<std::string, int32_t, TableHash, std::equal_to<>> ids_;
  std::vector<const std::string*> words_;
};

// Reads files into a WordStream.
class WordStreamReader {
 public:
  explicit WordStreamReader(const WordStreamOptions& options) : options_(options) {}

  void read(const std::string& path) {
    LineReader reader(path, WordStreamOptions::kMaxLine);
    for (TextLine line; reader.next(line);) {
      if (++stream_.lines % kReportEvery == 0 && options_.progress)
        options_.progress(stream_.lines);
      if (line.cut)
        ++stream_.too_long;
      else if (!is_utf8(line.text))
        ++stream_.bad_utf8;
      else
        add_line(options_.prepare ? options_.prepare(line.text) : std::string(line.text));
    }
    if (options_.progress) options_.progress(stream_.lines);
  }

  // Sorts the words by frequency and removes rare words.
  WordStream finish(const std::string& first_file) {
    std::vector<int64_t> counts(table_.size(), 0);
    for (const int32_t id : stream_.ids) ++counts[id];
    std::vector<int32_t> order(counts.size());
    std::iota(order.begin(), order.end(), 0);
    std::erase_if(order, [&](int32_t id) { return counts[id] < options_.min_count; });
    check(!order.empty(), ExitCode::data, first_file, ": no word occurs at least ",
          options_.min_count, " times; give more text or a lower `min_count`");
    std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
      return counts[a] != counts[b] ? counts[a] > counts[b] : table_.word(a) < table_.word(b);
    });
    std::vector<int32_t> renumbered(counts.size(), -1);
    for (const int32_t id : order) {
      renumbered[id] = static_cast<int32_t>(stream_.words.size());
      stream_.words.push_back(table_.word(id));
      stream_.counts.push_back(counts[id]);
    }
    renumber(renumbered);
    return std::move(stream_);
  }

 private:
  void add_line(const std::string& line) {
    if (options_.vocabulary) {
      for (const int32_t id : options_.vocabulary->encode(line))
        if (id == kUnk)
          ++stream_.rare;
        else
          stream_.ids.push_back(table_.id(options_.vocabulary->name(id)));
    } else {
      const std::string text = canonical(line);
      for (const std::string_view word : text_words(text))
        if (word.size() > Vocabulary::kMaxPieceBytes)
          ++stream_.rare;
        else
          stream_.ids.push_back(table_.id(word));
    }
    stream_.offsets.push_back(static_cast<int64_t>(stream_.ids.size()));
  }

  // Removes rare words and empty sentences, and splits long sentences.
  void renumber(const std::vector<int32_t>& renumbered) {
    const std::vector<int64_t> before = std::move(stream_.offsets);
    stream_.offsets = {0};
    int64_t written = 0;
    const auto end_sentence = [&] {
      if (written > stream_.offsets.back()) stream_.offsets.push_back(written);
    };
    for (size_t s = 0; s + 1 < before.size(); ++s) {
      for (int64_t i = before[s]; i < before[s + 1]; ++i) {
        const int32_t id = renumbered[stream_.ids[i]];
        if (id < 0) {
          ++stream_.rare;
          continue;
        }
        stream_.ids[written++] = id;
        if (written - stream_.offsets.back() == WordStreamOptions::kMaxSentence) end_sentence();
      }
      end_sentence();
    }
    stream_.ids.resize(written);
  }

  const WordStreamOptions& options_;
  WordTable table_;
  WordStream stream_;
};

}  // namespace

std::string WordStream::summary() const {
  std::string text = fmt::format("{} words, {} different, in {} lines; {} too rare",
                                 with_commas(static_cast<int64_t>(ids.size())),
                                 with_commas(static_cast<int64_t>(words.size())),
                                 with_commas(lines), with_commas(rare));
  if (bad_utf8 > 0)
    text += fmt::format("; skipped {} lines that are not UTF-8", with_commas(bad_utf8));
  if (too_long > 0)
    text += fmt::format("; skipped {} lines that are too long", with_commas(too_long));
  return text;
}

WordStream read_words(const std::vector<std::string>& files, const WordStreamOptions& options) {
  check(!files.empty(), ExitCode::usage,
        "no text files given, expected at least one; name the text files");
  WordStreamReader reader(options);
  for (const std::string& path : files) reader.read(path);
  return reader.finish(files.front());
}

}  // namespace fovea
