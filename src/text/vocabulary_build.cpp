#include "text/vocabulary_build.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "base/ascii.h"
#include "base/check.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/tokenization.h"

namespace fovea {
namespace {

constexpr int64_t kReportEvery = 10'000;

// Calls `each` with every line that is valid UTF-8, in canonical form.
template <class Each>
void for_lines(const std::vector<std::string>& files, const LinesRead& progress, Each each) {
  check(!files.empty(), ExitCode::usage,
        "no text files given, expected at least one; name the text files");
  int64_t lines = 0;
  for (const std::string& path : files) {
    LineReader reader(path);
    for (TextLine line; reader.next(line);) {
      if (++lines % kReportEvery == 0 && progress) progress(lines);
      if (is_utf8(line.text)) each(canonical(line.text));
    }
  }
  if (progress) progress(lines);
}

// The training lines: all lines or a random sample of them (Vitter's algorithm R).
std::vector<std::string> sample_lines(const std::vector<std::string>& files,
                                      const SentencePieceOptions& options) {
  std::vector<std::string> lines;
  Random random(options.seed);
  uint64_t seen = 0;
  for_lines(files, options.progress, [&](std::string line) {
    line = plain_blanks(std::move(line));
    if (split_words(line).empty()) return;
    ++seen;
    if (lines.size() < static_cast<size_t>(options.max_lines)) {
      lines.push_back(std::move(line));
    } else if (const uint64_t at = random.below(seen); at < lines.size()) {
      lines[at] = std::move(line);
    }
  });
  return lines;
}

// Passes lines to SentencePiece.
class LineIterator : public sentencepiece::SentenceIterator {
 public:
  explicit LineIterator(const std::vector<std::string>& lines) : lines_(lines) {}
  bool done() const override { return at_ == lines_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return lines_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& lines_;
  size_t at_ = 0;
};

std::unordered_map<std::string, std::string> arguments(const SentencePieceOptions& options) {
  return {
      {"model_type", options.model == SubwordModel::bpe ? "bpe" : "unigram"},
      {"vocab_size", std::to_string(options.size)},
      {"character_coverage", fmt::format("{}", options.character_coverage)},
      {"byte_fallback", options.byte_fallback ? "true" : "false"},
      {"pad_id", std::to_string(kPad)},
      {"bos_id", std::to_string(kBos)},
      {"eos_id", std::to_string(kEos)},
      {"unk_id", std::to_string(kUnk)},
      {"hard_vocab_limit", "false"},
      {"shuffle_input_sentence", "false"},
      // Lines are in NFC. NFKC would change their meaning: 1½ would become 11⁄2, 4² would become
      // 42.
      {"normalization_rule_name", "identity"},
      // The order of summation depends on the number of threads. A fixed number makes the result
      // the same on every machine.
      {"num_threads", "16"},
      {"minloglevel", "3"},
  };
}

bool is_special(std::string_view piece) {
  const Vocabulary specials;
  return specials.id(piece) != kUnk || piece == specials.name(kUnk);
}

Vocabulary count_pieces(Segmentation segmentation, const std::vector<std::string>& files,
                        const CountOptions& options) {
  PieceCounter counter(segmentation);
  for_lines(files, options.progress, [&](const std::string& line) { counter.add(line); });
  return counter.vocabulary(options, files.front());
}

}  // namespace

void PieceCounter::add(std::string_view line) {
  const std::string text = prepared(segmentation_, line);
  std::string key;
  for (const std::string_view piece : split(segmentation_, text)) {
    if (piece.size() > Vocabulary::kMaxPieceBytes) continue;
    key = piece;
    ++counts_[key];
  }
}

Vocabulary PieceCounter::vocabulary(const CountOptions& options, const std::string& name) const {
  std::vector<Vocabulary::Entry> entries;
  for (const auto& [piece, count] : counts_)
    if (count >= options.min_count && !is_special(piece)) entries.push_back({piece, count});
  check(!entries.empty(), ExitCode::data, name, ": no ", name_of(segmentation_), " occur at least ",
        options.min_count, " times; give more text or a lower `min_count`");
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.count != b.count ? a.count > b.count : a.piece < b.piece;
  });
  if (options.max_size > 0) {
    check(options.max_size > kSpecials, ExitCode::usage, "a vocabulary size of ", options.max_size,
          " is too small, expected at least ", kSpecials + 1,
          ", because four pieces are special; set a larger size");
    entries.resize(std::min(entries.size(), static_cast<size_t>(options.max_size - kSpecials)));
  }
  return Vocabulary::from_entries(segmentation_, entries);
}

Vocabulary train_sentencepiece(const std::vector<std::string>& files,
                               const SentencePieceOptions& options) {
  const std::vector<std::string> lines = sample_lines(files, options);
  check(!lines.empty(), ExitCode::data, files.front(),
        ": found no text to train the vocabulary on; give files with text");
  if (options.learning) options.learning();
  LineIterator iterator(lines);
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments(options), &iterator, &model);
  check(
      status.ok(), ExitCode::data, files.front(), ": SentencePiece could not learn ", options.size,
      " pieces from ", with_commas(static_cast<int64_t>(lines.size())),
      " lines: ", status.message(), "; choose another size",
      options.byte_fallback ? " (256 of the pieces are bytes: you can turn byte fallback off)" : "",
      ", or a lower character coverage if the text has many different characters");
  return Vocabulary::parse_sentencepiece(model, "the trained model");
}

Vocabulary build_word_vocabulary(const std::vector<std::string>& files,
                                 const CountOptions& options) {
  return count_pieces(Segmentation::words, files, options);
}

Vocabulary build_character_vocabulary(const std::vector<std::string>& files,
                                      const CountOptions& options) {
  return count_pieces(Segmentation::characters, files, options);
}

Vocabulary build_piece_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options) {
  return count_pieces(Segmentation::pieces, files, options);
}

Vocabulary build_token_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options) {
  return count_pieces(Segmentation::tokens, files, options);
}

}  // namespace fovea
