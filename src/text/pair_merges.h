#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/sip_hash.h"

namespace fovea {

// The order in which byte pair encoding applies merges that are possible at the same time:
//   rounds  all occurrences of the first merge of the list, from left to right (subword-nmt, GPT-2)
//   queue   the leftmost occurrence of the first merge, with pairs of earlier merges at once
//           (Hugging Face tokenizers)
// They differ only if a merge uses the result of a later merge of the list.
enum class MergeOrder { rounds, queue };

// The merges of byte pair encoding (Sennrich et al. 2016): pairs of symbols, the first ones first.
class PairMerges {
 public:
  struct Merge {
    std::string left, right;
  };

  // If a pair occurs twice, `rounds` uses the first occurrence and `queue` the last one, as the
  // original programs do.
  PairMerges(std::vector<Merge> merges, MergeOrder order);

  // Joins symbols of a word until no merge is possible, in O(n log n). The symbols are adjacent
  // parts of `word`, and `ends` are the offsets behind them. Returns the ends of the results.
  std::vector<size_t> apply(std::string_view word, std::vector<size_t> ends) const;

  const std::vector<Merge>& merges() const { return merges_; }

 private:
  struct Result {
    int32_t rank, symbol;
  };
  struct Node {  // a symbol of a word, in a list
    int32_t symbol, before, after;
  };
  struct PairHash {  // with a secret: the author of a file chooses the numbers
    size_t operator()(uint64_t key) const {
      std::string bytes(sizeof key, '\0');
      std::memcpy(bytes.data(), &key, sizeof key);
      return TableHash()(bytes);
    }
  };
  struct Candidate {
    int32_t rank, at, symbol;
    bool operator>(const Candidate& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  class Word;

  int32_t intern(const std::string& symbol);
  const Result* find(int32_t left, int32_t right) const;

  std::vector<Merge> merges_;
  MergeOrder order_;
  std::unordered_map<std::string, int32_t, TableHash, std::equal_to<>> symbols_;
  std::unordered_map<uint64_t, Result, PairHash> results_;  // keys: numbers of two symbols
};

}  // namespace fovea
