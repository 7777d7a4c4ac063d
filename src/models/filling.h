#pragma once

#include <cstdint>
#include <vector>

#include "models/model.h"

namespace fovea {

// Note [Filling]
// While training, sentences of padding are added until the number of words is a multiple of a
// block: products then come in few sizes, and each size is prepared once (Fill::blocks). Where
// steps are replayed (Fill::few_sizes), the numbers of sentences and of words in the longest are
// to be few as well; there, blocks grow with the batch, so that padding is a few percent of it. The
// padding attends only to itself and its label is none, so no gradient comes from it.
struct Grain {
  int64_t words, sentences, longest;  // what these are to be multiples of
};
Grain grain_of(Fill fill, int64_t words, int64_t sentences);

int64_t round_up(int64_t n, int64_t to);

// Sentences one after another, and then padding: words with the id 0.
struct Filled {
  std::vector<int32_t> ids, offsets;
  int64_t longest = 0;

  explicit Filled(const Tokens& sentences);
  int64_t words() const { return static_cast<int64_t>(ids.size()); }
  int64_t sentences() const { return static_cast<int64_t>(offsets.size()) - 1; }

  // Whether `more` sentences of padding, each of a word at least, need be no longer than the
  // others and than `most`.
  bool room_for(int64_t more, const Grain& to, int64_t most) const;
  void add(int64_t more, const Grain& to);
};

// Adds padding to one side, or to both as many sentences of it; none is longer than `most`.
void fill(Filled& side, Fill how, int64_t most);
void fill(Filled& source, Filled& target, Fill how, int64_t most);

}  // namespace fovea
