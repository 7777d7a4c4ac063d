#include "train/split_batch.h"

#include <algorithm>

namespace fovea {

std::vector<PairBatch> parts_of(const PairBatch& batch, const Corpus& corpus, int64_t tokens) {
  std::vector<PairBatch> parts;
  const std::span<const int64_t> members = batch.members;
  size_t begin = 0;
  int64_t source = 0, target = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const int64_t s = corpus.source_length(members[i]) + 1,
                  t = corpus.target_length(members[i]) + 1;
    if (i > begin && std::max(source + s, target + t) > tokens) {
      parts.push_back(gather(corpus, members.subspan(begin, i - begin)));
      begin = i;
      source = target = 0;
    }
    source += s;
    target += t;
  }
  parts.push_back(gather(corpus, members.subspan(begin)));
  return parts;
}

}  // namespace fovea
