#include "text/vocabulary_build.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "base/lines.h"
#include "base/log.h"
#include "base/random.h"
#include "base/utf8.h"
#include "text/pieces.h"

namespace fovea {
namespace {

constexpr int64_t kReportEvery = 10'000;

// Calls `each` with every line that is UTF-8, in the form that is cut into pieces.
template <class Each>
void for_lines(const std::vector<std::string>& files, const LinesRead& progress, Each each) {
  check(!files.empty(), Exit::usage, "no text files given to make a vocabulary of");
  int64_t lines = 0;
  for (const std::string& path : files) {
    LineReader reader(path);
    for (Line line; reader.next(line);) {
      if (++lines % kReportEvery == 0 && progress) progress(lines);
      if (is_utf8(line.text)) each(canonical(line.text));
    }
  }
  if (progress) progress(lines);
}

// The lines to learn from, all of them or a random sample (Vitter's algorithm R).
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

class Lines : public sentencepiece::SentenceIterator {
 public:
  explicit Lines(const std::vector<std::string>& lines) : lines_(lines) {}
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
      // Lines come in NFC. NFKC would change what they say: 1½ is not 11⁄2, 4² is not 42.
      {"normalization_rule_name", "identity"},
      // The share of each thread decides the order of its sums: a fixed number of threads makes
      // the result the same on every machine.
      {"num_threads", "16"},
      {"minloglevel", "3"},
  };
}

bool is_special(std::string_view piece) {
  const Vocabulary specials;
  return specials.id(piece) != kUnk || piece == specials.name(kUnk);
}

Vocabulary count_pieces(Cut cut, const std::vector<std::string>& files,
                        const CountOptions& options) {
  PieceCounter counter(cut);
  for_lines(files, options.progress, [&](const std::string& line) { counter.add(line); });
  return counter.vocabulary(options, files.front());
}

}  // namespace

void PieceCounter::add(std::string_view line) {
  const std::string text = prepared(cut_, line);
  std::string key;
  for (const std::string_view piece : split(cut_, text)) {
    if (piece.size() > Vocabulary::kMaxPieceBytes) continue;
    key = piece;
    ++counts_[key];
  }
}

Vocabulary PieceCounter::vocabulary(const CountOptions& options, const std::string& name) const {
  std::vector<Vocabulary::Entry> entries;
  for (const auto& [piece, count] : counts_)
    if (count >= options.min_count && !is_special(piece)) entries.push_back({piece, count});
  check(!entries.empty(), Exit::data, name, ": no ", name_of(cut_), " seen at least ",
        options.min_count, " times; give more text or a lower --min-count");
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return a.count != b.count ? a.count > b.count : a.piece < b.piece;
  });
  if (options.max_size > 0) {
    check(options.max_size > kSpecials, Exit::usage, "a vocabulary of ", options.max_size,
          " has no room beside the four special pieces; ask for more");
    entries.resize(std::min(entries.size(), static_cast<size_t>(options.max_size - kSpecials)));
  }
  return Vocabulary::from_entries(cut_, entries);
}

Vocabulary train_sentencepiece(const std::vector<std::string>& files,
                               const SentencePieceOptions& options) {
  const std::vector<std::string> lines = sample_lines(files, options);
  check(!lines.empty(), Exit::data, files.front(), ": no text to learn pieces from");
  if (options.learning) options.learning();
  Lines iterator(lines);
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(arguments(options), &iterator, &model);
  check(status.ok(), Exit::data, files.front(), ": SentencePiece could not learn ", options.size,
        " pieces from ", with_commas(static_cast<int64_t>(lines.size())),
        " lines: ", status.message(), "; ask for a size that fits",
        options.byte_fallback ? " (256 of the pieces are bytes: byte fallback can be turned off)"
                              : "",
        ", or for a lower character coverage if the text has very many characters");
  return Vocabulary::parse_sentencepiece(model, "the model just trained");
}

Vocabulary build_word_vocabulary(const std::vector<std::string>& files,
                                 const CountOptions& options) {
  return count_pieces(Cut::words, files, options);
}

Vocabulary build_character_vocabulary(const std::vector<std::string>& files,
                                      const CountOptions& options) {
  return count_pieces(Cut::characters, files, options);
}

Vocabulary build_piece_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options) {
  return count_pieces(Cut::pieces, files, options);
}

Vocabulary build_token_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options) {
  return count_pieces(Cut::tokens, files, options);
}

}  // namespace fovea
