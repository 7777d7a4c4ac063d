#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/lines.h"
#include "base/sentence_frame.h"
#include "base/settings.h"
#include "text/vocabulary.h"
#include "text/word_alignment.h"

namespace fovea {

// What to do with a line that is not UTF-8.
enum class BadUtf8 { skip, fail, replace };

// The options of reading a corpus.
struct CorpusOptions {
  int64_t max_length = 0;      // pieces of either side without </s>; 0 means no limit
  double max_ratio = 0;        // longer side ÷ shorter side, in pieces; 0 means no limit
  int64_t max_bytes = 65'536;  // longer lines count as too long, for any number of pieces
  BadUtf8 bad_utf8 = BadUtf8::skip;
  std::vector<double> weights = {};                       // of the files, see CorpusPart; empty: 1
  std::function<void(int64_t lines)> progress = nullptr;  // every 10,000 lines, and at the end

  void describe(Settings& settings);
};

// The numbers of line pairs that were read, kept, and skipped for each reason. Each skipped pair
// counts once, under the first reason that applies, in the order bad_utf8, empty, too_long, ratio:
//   read == kept + empty + too_long + bad_utf8 + ratio
struct CorpusCounts {
  int64_t read = 0, kept = 0, empty = 0, too_long = 0, bad_utf8 = 0, ratio = 0;
  int64_t carriage_returns = 0, byte_order_marks = 0;  // number of each that was removed
  std::string first_too_long;  // location of the first long line: "train.en:4711"

  // Returns, for example, "kept 998,120 of 1,000,000: 1,200 empty, 512 too long (first
  // train.en:4711), 168 bad UTF-8".
  std::string summary() const;

  // Returns, for example, "removed 12 carriage returns and 1 byte order mark". Empty if nothing was
  // removed.
  std::string removed() const;

  bool operator==(const CorpusCounts&) const = default;
};

// A pair of a corpus. The spans are valid while the corpus does not change.
struct SentencePair {
  std::span<const int32_t> source, target;  // without <s> and </s>
  int64_t line;                             // counted from 1 over all files
  std::span<const Link> links = {};         // (source piece, target piece), sorted by target piece
};

// Open files whose lines with equal numbers belong together.
struct PairReaders {
  LineReader &source, &target;
  LineReader* links = nullptr;  // its byte limit is kLongestLinks; null if there are no links
};

// The kind of the target side: sentences, which end with </s>, or labels of one piece each.
enum class TargetKind { sentences, labels };

// The pairs of one file of a corpus: those before `end` and after the part before. An epoch has
// each of them `weight` times, on average over epochs if that is not a whole number.
struct CorpusPart {
  int64_t end = 0;
  double weight = 1;
};

// A parallel corpus in memory, as ids of pieces.
class Corpus {
 public:
  explicit Corpus(TargetKind targets = TargetKind::sentences) : targets_(targets) {}

  // Reads pairs: line k of sources[f] and line k of targets[f]. If there are alignments, line k of
  // alignments[f] has the links between the words of the pair (Pharaoh format). Files may be plain,
  // .gz or "-". Throws ExitCode::data if the numbers of lines differ (with the first line that has
  // no partner), if the links of a kept pair are malformed or out of range, and for UTF-16 and
  // UTF-32. Throws ExitCode::files if a file cannot be read.
  static Corpus read(const std::vector<std::string>& sources,
                     const std::vector<std::string>& targets, const Vocabulary& source_vocabulary,
                     const Vocabulary& target_vocabulary, const CorpusOptions& options = {},
                     const std::vector<std::string>& alignments = {});

  // Appends the pairs of open files. Otherwise like the read() above.
  void read(const PairReaders& files, const Vocabulary& source_vocabulary,
            const Vocabulary& target_vocabulary, const CorpusOptions& options = {});
  void read(LineReader& source, LineReader& target, const Vocabulary& source_vocabulary,
            const Vocabulary& target_vocabulary, const CorpusOptions& options = {}) {
    read({source, target}, source_vocabulary, target_vocabulary, options);
  }

  void add(std::span<const int32_t> source, std::span<const int32_t> target, int64_t line);
  // Adds links between the pieces of the pair that was added last. Call link() for every pair or
  // for no pair.
  void link(Links pieces);
  // Sets the counts, for a corpus that was made with add() alone.
  void account(const CorpusCounts& counts) { counts_ = counts; }

  // The pieces that batches add to each sentence; labels have no frame of their own.
  const SentenceFrame& frame() const { return frame_; }
  void set_frame(SentenceFrame frame) { frame_ = std::move(frame); }

  TargetKind targets() const { return targets_; }
  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  SentencePair operator[](int64_t i) const;
  int64_t source_length(int64_t i) const { return source_.length(i); }
  int64_t target_length(int64_t i) const { return target_.length(i); }
  int64_t source_tokens() const { return static_cast<int64_t>(source_.ids.size()); }
  int64_t target_tokens() const { return static_cast<int64_t>(target_.ids.size()); }
  bool linked() const { return link_offsets_.size() > 1; }
  int64_t links() const { return static_cast<int64_t>(links_.size()); }
  const CorpusCounts& counts() const { return counts_; }

  // A hash of all ids, links and sentence ends. Shows whether training resumes on the same data.
  uint64_t fingerprint() const;

  // The files that read(sources, …) read, in order. Empty if all pairs have weight 1.
  const std::vector<CorpusPart>& parts() const { return parts_; }

 private:
  struct Side {
    std::vector<int32_t> ids;
    std::vector<int64_t> offsets{0};

    int64_t length(int64_t i) const { return offsets[i + 1] - offsets[i]; }
    std::span<const int32_t> sentence(int64_t i) const;
    void add(std::span<const int32_t> sentence);
  };
  TargetKind targets_;
  SentenceFrame frame_;
  Side source_, target_;
  std::vector<int64_t> lines_;
  Links links_;  // links of all pairs
  std::vector<int64_t> link_offsets_{0};
  std::vector<CorpusPart> parts_;
  CorpusCounts counts_;
};

// Throws the errors of Corpus::read for different numbers of files or lines and for malformed
// links. Does not check the text, and does not read standard input.
void check_partners(const std::vector<std::string>& sources,
                    const std::vector<std::string>& targets,
                    const std::vector<std::string>& alignments = {});

// A line that is ready for translation, and the changes that were made to it.
struct CleanLine {
  std::string text;       // valid UTF-8, no line end, at most max_bytes; may be empty
  bool replaced = false;  // true: U+FFFD replaces bytes that are not UTF-8
  bool cut = false;       // true: the text was truncated to max_bytes
};

// Makes a line valid UTF-8 of at most max_bytes. Replaces CR and LF by blanks, so that output lines
// correspond to input lines.
CleanLine clean_line(std::string_view line, int64_t max_bytes = 65'536);

}  // namespace fovea
