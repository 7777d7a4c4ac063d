#include "text/batch.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/random.h"

namespace fovea {
namespace {

// Every id is the number of its pair plus kSpecials; lengths are random.
Corpus random_corpus(int64_t pairs, uint64_t seed, uint64_t longest = 60) {
  Corpus corpus;
  Random random(seed);
  for (int64_t i = 0; i < pairs; ++i) {
    const auto id = static_cast<int32_t>(i + kSpecials);
    const std::vector<int32_t> source(1 + random.below(longest), id);
    const std::vector<int32_t> target(1 + random.below(longest), id);
    corpus.add(source, target, i + 1);
  }
  return corpus;
}

std::vector<int64_t> all_members(const BatchPlan& plan) {
  std::vector<int64_t> all;
  for (int64_t i = 0; i < plan.size(); ++i)
    all.insert(all.end(), plan.members(i).begin(), plan.members(i).end());
  return all;
}

int64_t cost(const Corpus& corpus, std::span<const int64_t> members, TokenCount counted) {
  int64_t source = 0, target = 0, longest = 0;
  for (const int64_t i : members) {
    source += corpus.source_length(i) + 1;
    target += corpus.target_length(i) + 1;
    longest = std::max({longest, corpus.source_length(i) + 1, corpus.target_length(i) + 1});
  }
  return counted == TokenCount::packed ? std::max(source, target)
                                       : longest * static_cast<int64_t>(members.size());
}

TEST(PairBatch, LinksBelongToTargetOut) {
  Corpus corpus;
  const std::vector<int32_t> two{4, 5}, three{4, 5, 6};
  corpus.add(three, two, 1);
  corpus.link({{2, 1}, {0, 1}});
  corpus.add(two, three, 2);
  corpus.link({{1, 0}, {0, 2}});
  const PairBatch batch = gather(corpus, std::vector<int64_t>{1, 0});
  EXPECT_EQ(batch.links.offsets, (std::vector<int32_t>{0, 1, 1, 2, 2, 2, 4, 4}));  // </s> has none
  EXPECT_EQ(batch.links.keys, (std::vector<int32_t>{1, 0, 0, 2}));
  EXPECT_EQ(batch.links.linked_words(), 3);
  EXPECT_EQ(std::ssize(batch.links.offsets), batch.target_out.tokens() + 1);
  EXPECT_TRUE(gather(random_corpus(3, 1), std::vector<int64_t>{0}).links.offsets.empty());
}

TEST(PairBatch, HasTheFrameOfTheCorpus) {
  Corpus corpus;
  const std::vector<int32_t> source{4, 5}, target{6, 7, 8};
  corpus.add(source, target, 1);
  corpus.link({{1, 0}, {0, 2}});
  corpus.set_frame({.start = 2,
                    .source_prefix = {9},
                    .source_suffix = {2, 10},
                    .target_prefix = {11, 12},
                    .source_end = false});
  const PairBatch batch = gather(corpus, std::vector<int64_t>{0});
  EXPECT_EQ(batch.source.ids, (std::vector<int32_t>{9, 4, 5, 2, 10}));
  EXPECT_EQ(batch.target_in.ids, (std::vector<int32_t>{2, 11, 12, 6, 7, 8}));
  EXPECT_EQ(batch.target_out.ids, (std::vector<int32_t>{11, 12, 6, 7, 8, 2}));
  EXPECT_EQ(batch.links.offsets, (std::vector<int32_t>{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(batch.links.keys, (std::vector<int32_t>{2, 1}));
  const PairBatch plain = gather(corpus, std::vector<int64_t>{0}, {});
  EXPECT_EQ(plain.source.ids, (std::vector<int32_t>{4, 5, 2}));
  EXPECT_EQ(plain.target_in.ids, (std::vector<int32_t>{1, 6, 7, 8}));
}

TEST(BatchPlan, EveryPairOncePerEpochWithinTheBudget) {
  Random random(1);
  for (int round = 0; round < 60; ++round) {
    const Corpus corpus = random_corpus(static_cast<int64_t>(random.below(3000)), random.bits64());
    BatchOptions options;
    options.tokens = static_cast<int64_t>(1 + random.below(2000));
    options.sentences = static_cast<int64_t>(random.below(3) * random.below(50));
    options.counted = random.below(2) ? TokenCount::packed : TokenCount::padded;
    options.bucket_width = static_cast<int64_t>(1 + random.below(20));
    options.seed = random.bits64();
    const BatchPlan plan(corpus, options, round);
    auto all = all_members(plan);
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(corpus.size());
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_EQ(all, expected);
    for (int64_t i = 0; i < plan.size(); ++i) {
      const auto members = plan.members(i);
      ASSERT_GE(members.size(), 1u);
      if (members.size() == 1) continue;
      ASSERT_LE(cost(corpus, members, options.counted), options.tokens);
      ASSERT_TRUE(options.sentences == 0 ||
                  static_cast<int64_t>(members.size()) <= options.sentences);
    }
  }
}

TEST(BatchPlan, SameSeedAndEpochGiveTheSameBatches) {
  const Corpus corpus = random_corpus(2000, 2);
  const BatchOptions options{.tokens = 500, .seed = 7};
  const BatchOptions other{.tokens = 500, .seed = 8};
  const auto epoch = [&](const BatchOptions& o, int64_t e) {
    return all_members(BatchPlan(corpus, o, e));
  };
  EXPECT_EQ(epoch(options, 3), epoch(options, 3));
  EXPECT_NE(epoch(options, 3), epoch(options, 4));
  EXPECT_NE(epoch(options, 3), epoch(other, 3));
}

// The order must never change between builds: a resumed run would use other batches.
TEST(BatchPlan, OrderIsPinned) {
  const Corpus corpus = random_corpus(12, 3, 9);
  const auto all = all_members(BatchPlan(corpus, {.tokens = 20, .seed = 1}, 0));
  EXPECT_EQ(all, (std::vector<int64_t>{8, 10, 0, 4, 7, 9, 5, 6, 11, 1, 3, 2}));
}

TEST(BatchPlan, FillsItsBudget) {
  const Corpus corpus = random_corpus(20'000, 4);
  const BatchPlan plan(corpus, {.tokens = 4096}, 0);
  int64_t tokens = 0;
  for (int64_t i = 0; i < plan.size(); ++i)
    tokens += cost(corpus, plan.members(i), TokenCount::packed);
  EXPECT_GE(static_cast<double>(tokens), 0.97 * 4096 * static_cast<double>(plan.size()));
}

TEST(BatchPlan, PadsLittle) {
  const Corpus corpus = random_corpus(20'000, 5);
  const BatchPlan plan(corpus, {.tokens = 4096, .counted = TokenCount::padded, .bucket_width = 1},
                       0);
  int64_t padded = 0, longer = 0;
  for (int64_t i = 0; i < plan.size(); ++i) {
    padded += cost(corpus, plan.members(i), TokenCount::padded);
    for (const int64_t m : plan.members(i))
      longer += std::max(corpus.source_length(m), corpus.target_length(m)) + 1;
  }
  EXPECT_LE(static_cast<double>(padded), 1.02 * static_cast<double>(longer));
}

TEST(BatchPlan, BatchesAreNotSortedByLength) {
  const Corpus corpus = random_corpus(20'000, 6);
  const BatchPlan plan(corpus, {.tokens = 1000}, 0);
  const auto length = [&](int64_t i) {
    const int64_t first = plan.members(i)[0];
    return std::max(corpus.source_length(first), corpus.target_length(first));
  };
  int64_t rising = 0;
  for (int64_t i = 1; i < plan.size(); ++i) rising += length(i) > length(i - 1) + 4;
  EXPECT_NEAR(static_cast<double>(rising) / static_cast<double>(plan.size()), 0.4, 0.1);
}

TEST(PairBatch, AddsMarks) {
  Corpus corpus;
  corpus.add(std::vector<int32_t>{10, 11}, std::vector<int32_t>{20}, 1);
  corpus.add(std::vector<int32_t>{12}, std::vector<int32_t>{21, 22}, 5);
  const PairBatch batch = gather(corpus, std::vector<int64_t>{1, 0});
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(batch.source.ids, (Ids{12, kEos, 10, 11, kEos}));
  EXPECT_EQ(batch.source.offsets, (Ids{0, 2, 5}));
  EXPECT_EQ(batch.target_in.ids, (Ids{kBos, 21, 22, kBos, 20}));
  EXPECT_EQ(batch.target_out.ids, (Ids{21, 22, kEos, 20, kEos}));
  EXPECT_EQ(batch.target_in.offsets, batch.target_out.offsets);
  EXPECT_EQ(batch.lines, (std::vector<int64_t>{5, 1}));
  EXPECT_EQ(batch.target_tokens, 5);
  EXPECT_EQ(batch.source.sentences(), 2);
  EXPECT_EQ(batch.source[1].size(), 3u);
}

TEST(PairBatch, EmptyCorpusGivesNoBatch) {
  const Corpus corpus;
  EXPECT_EQ(BatchPlan(corpus, {}, 0).size(), 0);
}

TEST(BatchesByLength, LongestFirstEachOnce) {
  Random random(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<int64_t> lengths(random.below(500));
    for (int64_t& length : lengths) length = static_cast<int64_t>(random.below(100));
    const BatchOptions options{.tokens = 300, .sentences = 16, .counted = TokenCount::padded};
    std::vector<int64_t> all;
    int64_t last = 1000;
    for (const auto& batch : batches_by_length(lengths, options)) {
      ASSERT_LE((lengths[batch[0]] + 1) * static_cast<int64_t>(batch.size()), 300);
      ASSERT_LE(batch.size(), 16u);
      for (const int64_t i : batch) {
        ASSERT_LE(lengths[i], last);
        last = lengths[i];
        all.push_back(i);
      }
    }
    std::sort(all.begin(), all.end());
    std::vector<int64_t> expected(lengths.size());
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_EQ(all, expected);
  }
  const std::vector<std::vector<int32_t>> sentences{{7}, {}, {8, 9}};
  EXPECT_EQ(pack_source(sentences, std::vector<int64_t>{2, 1}).ids,
            (std::vector<int32_t>{8, 9, kEos, kEos}));
}

}  // namespace
}  // namespace fovea
