#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sip_hash.h"
#include "text/vocabulary.h"

namespace fovea {

// The type of a SentencePiece model.
enum class SubwordModel { unigram, bpe };

// A callback that receives the number of lines read so far, from time to time.
using LinesRead = std::function<void(int64_t lines)>;

// The options of training a SentencePiece model.
struct SentencePieceOptions {
  SubwordModel model = SubwordModel::unigram;
  int32_t size = 8000;            // including the four special pieces
  double character_coverage = 1;  // fraction of the text whose characters get a piece
  bool byte_fallback = true;      // adds 256 pieces of bytes, which spell unknown characters
  int64_t max_lines = 2'000'000;  // if there are more, a random sample is used
  uint64_t seed = 1;
  LinesRead progress = nullptr;
  std::function<void()> learning = nullptr;  // called after all lines were read
};

// Trains one model on all files. The same files and options give the same bytes.
Vocabulary train_sentencepiece(const std::vector<std::string>& files,
                               const SentencePieceOptions& options);

// The options of a vocabulary that is made by counting pieces.
struct CountOptions {
  int64_t min_count = 1;
  int32_t max_size = 0;  // including the four special pieces; 0 means no limit
  LinesRead progress = nullptr;
};

// Counts the pieces of lines and makes a vocabulary of these pieces.
class PieceCounter {
 public:
  // REQUIRES: segmentation is not sentencepiece.
  explicit PieceCounter(Segmentation segmentation) : segmentation_(segmentation) {}

  void add(std::string_view line);
  // Sorts the pieces by descending frequency, and pieces of equal frequency in byte order. Error
  // messages use `name` as the name of the text.
  Vocabulary vocabulary(const CountOptions& options, const std::string& name) const;

 private:
  Segmentation segmentation_;
  std::unordered_map<std::string, int64_t, TableHash> counts_;
};

// Make a vocabulary of the words, characters, split pieces or tokens of all files, in the order of
// PieceCounter::vocabulary(). Words of the text that are names of special pieces are omitted.
Vocabulary build_word_vocabulary(const std::vector<std::string>& files,
                                 const CountOptions& options = {});
Vocabulary build_character_vocabulary(const std::vector<std::string>& files,
                                      const CountOptions& options = {});
Vocabulary build_piece_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options = {});
Vocabulary build_token_vocabulary(const std::vector<std::string>& files,
                                  const CountOptions& options = {});

}  // namespace fovea
