#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/vocabulary.h"

namespace fovea {

enum class SubwordModel { unigram, bpe };

// Called now and then with the number of lines read so far.
using LinesRead = std::function<void(int64_t lines)>;

struct SentencePieceOptions {
  SubwordModel model = SubwordModel::unigram;
  int32_t size = 8000;            // with the four specials
  double character_coverage = 1;  // share of the text whose characters get a piece
  bool byte_fallback = true;      // 256 pieces for bytes, which spell unknown characters
  int64_t max_lines = 2'000'000;  // of more, a random sample is used
  uint64_t seed = 1;
  LinesRead progress = nullptr;
  std::function<void()> learning = nullptr;  // called when all is read
};

// Learns pieces from all files together. The same files and options give the same bytes.
Vocabulary train_sentencepiece(const std::vector<std::string>& files,
                               const SentencePieceOptions& options);

struct CountOptions {
  int64_t min_count = 1;
  int32_t max_size = 0;  // with the four specials; 0 means no limit
  LinesRead progress = nullptr;
};

// Counts the pieces of lines that come one by one, to make a vocabulary of them.
class PieceCounter {
 public:
  // REQUIRES: cut is not sentencepiece.
  explicit PieceCounter(Cut cut) : cut_(cut) {}

  void add(std::string_view line);
  // The most frequent first and those equally frequent in byte order; `name` stands for the text
  // in errors.
  Vocabulary vocabulary(const CountOptions& options, const std::string& name) const;

 private:
  Cut cut_;
  std::unordered_map<std::string, int64_t> counts_;
};

// The words (characters, ready-made pieces, tokens) of all files, the most frequent first and those
// equally frequent in byte order. Names of specials found in the text are left out.
Vocabulary build_word_vocabulary(const std::vector<std::string>& files,
                                 const CountOptions& options = {});
Vocabulary build_character_vocabulary(const std::vector<std::string>& files,
                                      const CountOptions& options = {});
Vocabulary build_piece_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options = {});
Vocabulary build_token_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options = {});

}  // namespace fovea
