#include "eval/ngrams.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace fovea {
namespace {

TEST(NgramTable, EqualNgramsHaveEqualNumbersInAnyOrder) {
  std::mt19937 random(7);
  NgramTable ngrams;
  for (int round = 0; round < 200; ++round) {
    std::vector<std::u32string> texts(3);
    for (auto& text : texts)
      for (size_t n = random() % 30; n > 0; --n) text += static_cast<char32_t>(U'a' + random() % 3);
    ngrams.start(texts);
    for (size_t order = 1; order <= 6; ++order) {
      if (order > 1) ngrams.advance();
      std::map<std::u32string, uint32_t> numbers;
      for (size_t t = 0; t < texts.size(); ++t) {
        size_t expected = texts[t].size() < order ? 0 : texts[t].size() - order + 1;
        ASSERT_EQ(ngrams.of(t).size(), expected);
        for (size_t i = 0; i < expected; ++i) {
          auto [seen, is_new] = numbers.try_emplace(texts[t].substr(i, order), ngrams.of(t)[i]);
          EXPECT_EQ(seen->second, ngrams.of(t)[i]);
          EXPECT_LT(ngrams.of(t)[i], ngrams.distinct());
        }
      }
      EXPECT_EQ(numbers.size(), ngrams.distinct());  // and different n-grams have different numbers
    }
  }
}

TEST(NgramTable, CountsOccurrences) {
  std::vector<int> counts;
  count_ngrams({0, 2, 2}, 4, counts);
  EXPECT_EQ(counts, (std::vector<int>{1, 0, 2, 0}));
}

}  // namespace
}  // namespace fovea
