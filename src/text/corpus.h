#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/lines.h"
#include "base/settings.h"
#include "text/links.h"
#include "text/vocabulary.h"

namespace fovea {

enum class BadUtf8 { skip, fail, replace };

struct CorpusOptions {
  int64_t max_length = 0;      // pieces of either side without </s>; 0 means no limit
  double max_ratio = 0;        // longer side ÷ shorter side, in pieces; 0 means no limit
  int64_t max_bytes = 65'536;  // a longer line is too long whatever its pieces are
  BadUtf8 bad_utf8 = BadUtf8::skip;
  std::function<void(int64_t lines)> progress = nullptr;  // called now and then

  void describe(Settings& settings);
};

// What became of each pair of lines that was read. Each is counted once, under the first
// reason that applies, in the order bad_utf8, empty, too_long, ratio:
//   read == kept + empty + too_long + bad_utf8 + ratio
struct CorpusCounts {
  int64_t read = 0, kept = 0, empty = 0, too_long = 0, bad_utf8 = 0, ratio = 0;
  int64_t carriage_returns = 0, byte_order_marks = 0;  // removed from lines and files
  std::string first_too_long;                          // "train.en:4711"

  // "kept 998,120 of 1,000,000: 1,200 empty, 512 too long (first train.en:4711), 168 bad UTF-8"
  std::string summary() const;

  // "removed 12 carriage returns and 1 byte order mark"; empty where nothing was removed.
  std::string removed() const;

  bool operator==(const CorpusCounts&) const = default;
};

struct Pair {
  std::span<const int32_t> source, target;  // without <s> and </s>
  int64_t line;                             // from 1, through all files
  std::span<const Link> links = {};         // (source piece, target piece), by target piece
};

// Open files that belong together line by line.
struct PairReaders {
  LineReader &source, &target;
  LineReader* links = nullptr;  // made with the limit kLongestLinks; or absent
};

// What stands on the target side: sentences, which </s> ends, or labels of one piece each.
enum class Targets { sentences, labels };

// Parallel text in memory: the ids of all sentences one after another.
class Corpus {
 public:
  explicit Corpus(Targets targets = Targets::sentences) : targets_(targets) {}

  // Line k of sources[f] and line k of targets[f] are a pair, and line k of alignments[f], where
  // there are any, the links between their words (Pharaoh). Files may be plain, .gz or "-".
  // Throws Exit::data where the numbers of lines differ, naming the first line that has no
  // partner, for links that are none or lead beyond the words of a pair that is kept, and for
  // UTF-16 and UTF-32; Exit::files where a file cannot be read.
  static Corpus read(const std::vector<std::string>& sources,
                     const std::vector<std::string>& targets, const Vocabulary& source_vocabulary,
                     const Vocabulary& target_vocabulary, const CorpusOptions& options = {},
                     const std::vector<std::string>& alignments = {});

  // Appends the pairs of open files, as read does.
  void read(const PairReaders& files, const Vocabulary& source_vocabulary,
            const Vocabulary& target_vocabulary, const CorpusOptions& options = {});
  void read(LineReader& source, LineReader& target, const Vocabulary& source_vocabulary,
            const Vocabulary& target_vocabulary, const CorpusOptions& options = {}) {
    read({source, target}, source_vocabulary, target_vocabulary, options);
  }

  void add(std::span<const int32_t> source, std::span<const int32_t> target, int64_t line);
  // Links between the pieces of the pair added last. Every pair has its call or none has.
  void link(Links pieces);
  // Says what became of the lines, where add() was used alone.
  void account(const CorpusCounts& counts) { counts_ = counts; }

  Targets targets() const { return targets_; }
  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  Pair operator[](int64_t i) const;
  int64_t source_length(int64_t i) const { return source_.length(i); }
  int64_t target_length(int64_t i) const { return target_.length(i); }
  int64_t source_tokens() const { return static_cast<int64_t>(source_.ids.size()); }
  int64_t target_tokens() const { return static_cast<int64_t>(target_.ids.size()); }
  bool linked() const { return link_offsets_.size() > 1; }
  int64_t links() const { return static_cast<int64_t>(links_.size()); }
  const CorpusCounts& counts() const { return counts_; }

  // A hash of all ids, links and where sentences end; tells whether training resumes on the same
  // data.
  uint64_t fingerprint() const;

 private:
  struct Side {
    std::vector<int32_t> ids;
    std::vector<int64_t> offsets{0};

    int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
    std::span<const int32_t> sentence(int64_t i) const;
    void add(std::span<const int32_t> sentence);
  };
  Targets targets_;
  Side source_, target_;
  std::vector<int64_t> lines_;
  Links links_;  // of all pairs
  std::vector<int64_t> link_offsets_{0};
  CorpusCounts counts_;
};

// Throws what Corpus::read would throw where the numbers of files or lines differ or links are
// none, without looking at what stands in the text; standard input is left for read to judge.
void check_partners(const std::vector<std::string>& sources,
                    const std::vector<std::string>& targets,
                    const std::vector<std::string>& alignments = {});

// A line fit for translating, and what had to be done to it.
struct CleanLine {
  std::string text;       // valid UTF-8, no line end, at most max_bytes; may be empty
  bool replaced = false;  // bytes that are not UTF-8 became U+FFFD
  bool cut = false;       // it was longer than max_bytes
};

// Every input line gives one CleanLine, so output stays line by line beside the input. Line
// ends inside become blanks.
CleanLine clean_line(std::string_view line, int64_t max_bytes = 65'536);

}  // namespace fovea
