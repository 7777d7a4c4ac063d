#include "models/batch_padding.h"

#include <algorithm>
#include <bit>

namespace fovea {

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

PaddingUnit padding_unit(BatchPadding padding, int64_t words, int64_t sentences) {
  if (padding != BatchPadding::few_sizes) return {64, 1, 64};
  const auto fraction = [](int64_t n, int parts) {  // (largest power of two ≤ n) / parts
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(n))) / parts;
  };
  return {std::max<int64_t>(64, fraction(words, 32)), std::max<int64_t>(8, fraction(sentences, 8)),
          8};
}

PaddedSentences::PaddedSentences(const TokenBatch& t)
    : ids(t.ids.begin(), t.ids.end()), offsets(t.offsets.begin(), t.offsets.end()) {
  for (size_t b = 1; b < offsets.size(); ++b)
    longest = std::max<int64_t>(longest, offsets[b] - offsets[b - 1]);
}

bool PaddedSentences::can_add(int64_t count, const PaddingUnit& unit, int64_t max_length) const {
  const int64_t length = std::min(round_up(longest, unit.longest), max_length);
  return round_up(words() + count, unit.words) - words() <= count * length;
}

void PaddedSentences::add(int64_t count, const PaddingUnit& unit) {
  const int64_t begin = words(), padding = round_up(begin + count, unit.words) - begin;
  for (int64_t i = 1; i <= count; ++i)
    offsets.push_back(static_cast<int32_t>(begin + padding * i / count));
  ids.resize(static_cast<size_t>(begin + padding), 0);
  longest = round_up(longest, unit.longest);
}

void fill(PaddedSentences& source, PaddedSentences& target, BatchPadding padding,
          int64_t max_length) {
  if (padding == BatchPadding::nothing) return;
  const PaddingUnit s = padding_unit(padding, source.words(), source.sentences()),
                    t = padding_unit(padding, target.words(), target.sentences());
  int64_t count = round_up(source.sentences() + 1, s.sentences) - source.sentences();
  while (!source.can_add(count, s, max_length) || !target.can_add(count, t, max_length))
    count += s.sentences;
  source.add(count, s);
  target.add(count, t);
}

void fill(PaddedSentences& side, BatchPadding padding, int64_t max_length) {
  PaddedSentences other = side;
  fill(side, other, padding, max_length);
}

}  // namespace fovea
