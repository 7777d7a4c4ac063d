#include "models/filling.h"

#include <algorithm>
#include <bit>

namespace fovea {

int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

Grain grain_of(Fill fill, int64_t words, int64_t sentences) {
  if (fill != Fill::few_sizes) return {64, 1, 64};
  const auto share = [](int64_t of, int parts) {
    return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(of))) / parts;
  };
  return {std::max<int64_t>(64, share(words, 32)), std::max<int64_t>(8, share(sentences, 8)), 8};
}

Filled::Filled(const Tokens& t)
    : ids(t.ids.begin(), t.ids.end()), offsets(t.offsets.begin(), t.offsets.end()) {
  for (size_t b = 1; b < offsets.size(); ++b)
    longest = std::max<int64_t>(longest, offsets[b] - offsets[b - 1]);
}

bool Filled::room_for(int64_t more, const Grain& to, int64_t most) const {
  const int64_t each = std::min(round_up(longest, to.longest), most);
  return round_up(words() + more, to.words) - words() <= more * each;
}

void Filled::add(int64_t more, const Grain& to) {
  const int64_t before = words(), padding = round_up(before + more, to.words) - before;
  for (int64_t i = 1; i <= more; ++i)
    offsets.push_back(static_cast<int32_t>(before + padding * i / more));
  ids.resize(static_cast<size_t>(before + padding), 0);
  longest = round_up(longest, to.longest);
}

void fill(Filled& source, Filled& target, Fill how, int64_t most) {
  if (how == Fill::nothing) return;
  const Grain s = grain_of(how, source.words(), source.sentences()),
              t = grain_of(how, target.words(), target.sentences());
  int64_t more = round_up(source.sentences() + 1, s.sentences) - source.sentences();
  while (!source.room_for(more, s, most) || !target.room_for(more, t, most)) more += s.sentences;
  source.add(more, s);
  target.add(more, t);
}

void fill(Filled& side, Fill how, int64_t most) {
  Filled other = side;
  fill(side, other, how, most);
}

}  // namespace fovea
