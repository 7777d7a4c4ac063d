#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fovea {

// The pieces, by their ids, that a model reads around those of a sentence. The encoder reads
// source_prefix, the sentence, source_suffix and, with source_end, </s>. The decoder reads start,
// target_prefix and the words of the translation.
struct SentenceFrame {
  int32_t start = 1;  // <s>
  std::vector<int32_t> source_prefix = {}, source_suffix = {}, target_prefix = {};
  bool source_end = true;

  // The number of pieces that the frame adds to a source.
  int64_t source_pieces() const {
    return static_cast<int64_t>(source_prefix.size() + source_suffix.size()) + (source_end ? 1 : 0);
  }
  // The maximum number of pieces that the frame adds to a source, or to the words that the decoder
  // reads.
  int64_t added_pieces() const {
    return std::max(source_pieces(), 1 + static_cast<int64_t>(target_prefix.size()));
  }
  // The last piece that the decoder reads before the first word of a translation.
  int32_t before_first() const { return target_prefix.empty() ? start : target_prefix.back(); }

  bool operator==(const SentenceFrame&) const = default;
};

}  // namespace fovea
