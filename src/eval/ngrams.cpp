#include "eval/ngrams.h"

#include <bit>
#include <unordered_map>
#include <utility>

namespace fovea {

void NgramTable::begin_round(size_t keys) {
  size_t needed = std::bit_ceil(2 * keys + 2);
  if (slots_.size() < needed) slots_.assign(needed, Slot{0, 0, 0});
  ++round_;  // slots that an earlier round filled count as empty
  distinct_ = 0;
}

uint32_t NgramTable::number(uint64_t key) {
  size_t mask = slots_.size() - 1;
  size_t at = static_cast<size_t>((key * 0x9e3779b97f4a7c15ULL) >> 20) & mask;
  while (slots_[at].round == round_ && slots_[at].key != key) at = (at + 1) & mask;
  if (slots_[at].round != round_) slots_[at] = {key, distinct_++, round_};
  return slots_[at].number;
}

void NgramTable::start(std::vector<Sequence> sequences) {
  size_t size = 0;
  for (const Sequence& s : sequences) size += s.size();
  begin_round(size);
  for (Sequence& s : sequences)
    for (uint32_t& symbol : s) symbol = number(symbol);
  symbols_ = std::move(sequences);
  numbers_ = symbols_;
}

void NgramTable::start(std::span<const std::vector<std::u32string_view>> texts) {
  std::unordered_map<std::u32string_view, uint32_t> seen;
  std::vector<Sequence> sequences(texts.size());
  for (size_t t = 0; t < texts.size(); ++t)
    for (std::u32string_view word : texts[t])
      sequences[t].push_back(
          seen.try_emplace(word, static_cast<uint32_t>(seen.size())).first->second);
  start(std::move(sequences));
}

void NgramTable::start(std::span<const std::u32string> texts) {
  std::vector<Sequence> sequences;
  for (const std::u32string& text : texts) sequences.emplace_back(text.begin(), text.end());
  start(std::move(sequences));
}

void NgramTable::advance() {
  size_t size = 0;
  for (const Sequence& s : numbers_) size += s.size();
  begin_round(size);
  for (size_t t = 0; t < numbers_.size(); ++t) {
    Sequence& grams = numbers_[t];
    const Sequence& symbols = symbols_[t];
    if (grams.empty()) continue;
    size_t n = symbols.size() - grams.size() + 1;  // n: the current order of `grams`
    for (size_t i = 0; i + n < symbols.size(); ++i)
      grams[i] = number(uint64_t{grams[i]} << 32 | symbols[i + n]);
    grams.pop_back();
  }
}

void count_ngrams(const NgramTable::Sequence& sequence, uint32_t distinct,
                  std::vector<int>& counts) {
  counts.assign(distinct, 0);
  for (uint32_t number : sequence) ++counts[number];
}

}  // namespace fovea
