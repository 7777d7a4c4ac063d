#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "base/files.h"
#include "temporary.h"
#include "text/batch.h"

namespace fovea {
namespace {

// Two files of different words, read with weights.
class CorpusWeights : public testing::Test {
 protected:
  static constexpr int64_t kNew = 10, kOld = 23;

  Corpus read(const std::vector<double>& weights) const {
    std::vector<Vocabulary::Entry> entries;
    std::string texts[2];
    for (int64_t i = 0; i < kNew + kOld; ++i) {
      const std::string word = "w" + std::to_string(i);
      entries.push_back({word, 1});
      texts[i < kNew ? 0 : 1] += word + "\n";
    }
    write_atomically(folder_ / "new", texts[0]);
    write_atomically(folder_ / "old", texts[1]);
    const Vocabulary words = Vocabulary::from_entries(Segmentation::words, entries);
    const std::vector<std::string> files{folder_ / "new", folder_ / "old"};
    return Corpus::read(files, files, words, words, {.weights = weights});
  }

  // How often each pair is in an epoch.
  static std::map<int64_t, int64_t> counts(const Corpus& corpus, int64_t epoch) {
    const BatchPlan plan(corpus, {.tokens = 8}, epoch);
    std::map<int64_t, int64_t> found;
    for (int64_t i = 0; i < plan.size(); ++i)
      for (const int64_t pair : plan.members(i)) ++found[pair];
    return found;
  }

  TemporaryFolder folder_;
};

TEST_F(CorpusWeights, AreTheNumbersOfCopies) {
  const Corpus corpus = read({3, 0.25});
  for (const int64_t epoch : {0, 1, 7}) {
    const auto found = counts(corpus, epoch);
    int64_t old = 0;
    for (const auto& [pair, count] : found) {
      if (pair < kNew) {
        EXPECT_EQ(count, 3) << pair;
      }
      old += pair < kNew ? 0 : count;
    }
    EXPECT_EQ(old, 6) << "0.25 of 23";
    EXPECT_EQ(found, counts(corpus, epoch)) << "deterministic";
  }
  EXPECT_NE(counts(corpus, 0), counts(corpus, 1));
  EXPECT_EQ(counts(read({0, 1}), 0).size(), static_cast<size_t>(kOld));
  EXPECT_EQ(BatchPlan(read({0, 1.5}), {}, 0).pairs(), kOld + 12);
}

TEST_F(CorpusWeights, UseAllPairsEquallyOften) {
  const Corpus corpus = read({0, 0.25});
  std::map<int64_t, int64_t> all;
  for (int64_t epoch = 0; epoch < kOld; ++epoch)
    for (const auto& [pair, count] : counts(corpus, epoch)) all[pair] += count;
  EXPECT_EQ(all.size(), static_cast<size_t>(kOld));
  for (const auto& [pair, count] : all) EXPECT_EQ(count, 6) << pair;
}

TEST_F(CorpusWeights, OfOneChangeNothing) {
  const Corpus plain = read({}), ones = read({1, 1});
  const BatchPlan a(plain, {.tokens = 8}, 2), b(ones, {.tokens = 8}, 2);
  ASSERT_EQ(a.size(), b.size());
  for (int64_t i = 0; i < a.size(); ++i)
    EXPECT_TRUE(std::ranges::equal(a.members(i), b.members(i))) << i;
}

}  // namespace
}  // namespace fovea
