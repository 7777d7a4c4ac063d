#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace fovea::testing {

// Pairs of sentences in the form of model inputs: the end symbol after each source, the start
// symbol before and the end symbol after each target.
struct Sentences {
  std::vector<int32_t> source, source_offsets{0}, in, out, offsets{0};

  void add(const std::vector<int32_t>& from, const std::vector<int32_t>& to) {
    source.insert(source.end(), from.begin(), from.end());
    source.push_back(2);
    in.push_back(1);
    in.insert(in.end(), to.begin(), to.end());
    out.insert(out.end(), to.begin(), to.end());
    out.push_back(2);
    source_offsets.push_back(static_cast<int32_t>(source.size()));
    offsets.push_back(static_cast<int32_t>(in.size()));
  }
  TokenBatch sources() const { return {source, source_offsets}; }
  TokenBatch targets() const { return {in, offsets}; }
};

inline Sentences ragged() {
  Sentences s;
  s.add({3, 4, 5}, {6, 7});
  s.add({}, {3});
  s.add({8}, {});
  return s;
}

// Adds pair n of thirty pairs of all lengths, with words from 3 to 8.
inline void add_pair(Sentences& to, int n) {
  to.add(std::vector<int32_t>(static_cast<size_t>(1 + n % 7), 3 + n % 6),
         std::vector<int32_t>(static_cast<size_t>(1 + n % 5), 3 + n % 6));
}

}  // namespace fovea::testing
