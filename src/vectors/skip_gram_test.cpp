#include "vectors/skip_gram.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <map>

#include "base/random.h"
#include "effort.h"
#include "temporary.h"
#include "vectors/neighbours.h"
#include "vectors/skip_gram_pairs.h"

namespace fovea {
namespace {

// Sentences of twelve words of one topic; there are `topics` topics of eight words each.
WordStream topic_text(int topics, int sentences) {
  WordStream text;
  Random random(9);
  for (int t = 0; t < topics; ++t)
    for (int w = 0; w < 8; ++w)
      text.words.push_back(std::string(1, static_cast<char>('a' + t)) + std::to_string(w));
  text.counts.assign(text.words.size(), 0);
  for (int s = 0; s < sentences; ++s) {
    const auto topic = static_cast<int32_t>(random.below(topics));
    for (int w = 0; w < 12; ++w) {
      text.ids.push_back(8 * topic + static_cast<int32_t>(random.below(8)));
      ++text.counts[text.ids.back()];
    }
    text.offsets.push_back(static_cast<int64_t>(text.ids.size()));
  }
  return text;
}

SkipGramOptions small_options() {
  SkipGramOptions options;
  options.size = 20;
  options.epochs = 8;
  options.subsample = 0;
  return options;
}

TEST(SkipGram, WordsOfOneTopicAreNearest) {
  const WordStream text = topic_text(6, 2000);
  SkipGramOptions options = small_options();
  std::vector<double> losses;
  options.progress = [&](const SkipGramProgress& p) {
    losses.push_back(p.loss);
    return true;
  };
  const WordVectors vectors = train_skip_gram(text, options);
  EXPECT_EQ(vectors.words(), 48);
  EXPECT_LT(losses.front(), std::log(2.0));  // the loss of scores of 0
  EXPECT_LT(losses.back(), 0.9 * losses.front());
  const NeighbourSearch search(vectors);
  int right = 0;
  for (int64_t word = 0; word < 48; ++word)
    for (const Neighbour& n : search.nearest(vectors.vector(word), 7, word))
      right += vectors.word(n.word)[0] == vectors.word(word)[0];
  EXPECT_GE(right, 330);  // of 336
}

TEST(SkipGram, SameBitsForTheSameSeedAndAnyNumberOfThreads) {
  const WordStream text = topic_text(6, 4000);
  const int before = omp_get_max_threads();
  const auto learn = [&](int threads, uint64_t seed) {
    omp_set_num_threads(threads);
    SkipGramOptions options = small_options();
    options.seed = seed;
    options.epochs = only_runs() ? 2 : 8;  // long enough for chunks that threads share
    options.subsample = 0.1;
    const WordVectors vectors = train_skip_gram(text, options);
    std::vector<float> all;
    for (int64_t i = 0; i < vectors.words(); ++i)
      all.insert(all.end(), vectors.vector(i).begin(), vectors.vector(i).end());
    return all;
  };
  const auto one = learn(1, 1);
  EXPECT_EQ(learn(1, 1), one);
  EXPECT_EQ(learn(3, 1), one);
  EXPECT_NE(learn(1, 2), one);
  omp_set_num_threads(before);
}

TEST(SkipGram, ReportsProgressAndStopsOnRequest) {
  const WordStream text = topic_text(2, 1000);
  SkipGramOptions options = small_options();
  SkipGramProgress last{};
  options.progress = [&](const SkipGramProgress& p) {
    EXPECT_GT(p.words, last.words);
    EXPECT_TRUE(last.words == 0 || p.rate < last.rate);
    last = p;
    return true;
  };
  train_skip_gram(text, options);
  EXPECT_EQ(last.words, 8 * 12'000);
  EXPECT_EQ(last.total, 8 * 12'000);
  EXPECT_LT(last.rate, 0.05 * options.rate);
  int calls = 0;
  options.progress = [&](const SkipGramProgress&) { return ++calls < 3; };
  train_skip_gram(text, options);
  EXPECT_EQ(calls, 3);
}

TEST(SkipGram, AcceptsTheSmallestText) {
  WordStream text;
  text.words = {"a"};
  text.counts = {3};
  text.ids = {0, 0, 0};
  text.offsets = {0, 2, 3};
  const WordVectors vectors = train_skip_gram(text, small_options());
  EXPECT_EQ(vectors.words(), 1);
  for (const float x : vectors.vector(0)) EXPECT_TRUE(std::isfinite(x));
}

TEST(SkipGram, ReportsDivergence) {
  SkipGramOptions options = small_options();
  options.rate = 1e30;
  message_of(ExitCode::diverged, [&] { train_skip_gram(topic_text(2, 500), options); });
  options.size = 0;
  message_of(ExitCode::usage, [&] { train_skip_gram(topic_text(2, 500), options); });
}

TEST(SkipGramPairs, AliasTableDrawsByWeight) {
  const std::vector<double> weights{5, 0, 1, 3, 0.5, 0.5};
  const AliasTable table(weights);
  FastRandom random(1);
  std::vector<double> drawn(weights.size(), 0);
  constexpr int kDraws = 400'000;
  for (int i = 0; i < kDraws; ++i) ++drawn[table.draw(random.bits())];
  for (size_t i = 0; i < weights.size(); ++i) {
    const double p = weights[i] / 10;
    EXPECT_NEAR(drawn[i] / kDraws, p, 5 * std::sqrt(p * (1 - p) / kDraws) + 1e-9) << i;
  }
  EXPECT_EQ(AliasTable(std::vector{3.0}).draw(UINT64_MAX), 0);
}

// The word of each row of a partition.
std::map<int32_t, int32_t> words_of(const WordPartition& partition, int32_t words) {
  std::map<int32_t, int32_t> all;
  for (int32_t word = 0; word < words; ++word) all[partition.row_of(word)] = word;
  return all;
}

// Each position has every pair of its random window once, with its negative samples, and no pair
// with itself.
TEST(SkipGramPairs, HaveExpectedCountsAndBuckets) {
  const WordStream text = topic_text(6, 3000);
  SkipGramOptions options = small_options();
  const PairSampler sampler(text, options);
  PairBuckets buckets(WordPartition(static_cast<int64_t>(text.words.size())));
  sampler.sample(0, text.sentences(), 5, buckets);
  auto word = words_of(buckets.partition, 48);
  double near = 0, random = 0;
  for (int32_t i = 0; i < kParts * kParts; ++i)
    for (const auto& pair : buckets.pairs[i]) {
      const int32_t in = word.at(pair.input);
      const int32_t out = word.at(pair.output < 0 ? ~pair.output : pair.output);
      EXPECT_EQ(WordPartition::part_of(in) * kParts + WordPartition::part_of(out), i);
      EXPECT_TRUE(pair.output < 0 || in / 8 == out / 8);  // of one topic
      ++(pair.output < 0 ? random : near);
    }
  // A window of b ∈ 1…5 on twelve words has 2 (12 b − b (b + 1) / 2) pairs: 58 on average.
  const double expected = 3000 * 58.0;
  EXPECT_NEAR(near / expected, 1, 0.01);
  EXPECT_NEAR(random / near, 5 * (1 - 1 / 48.0), 0.05);  // the context word is not its own negative
}

// One sentence of 9,000 "the", 500 "cat" and 500 "sat", in any order.
WordStream skewed_text() {
  WordStream text;
  text.words = {"the", "cat", "sat"};
  text.counts = {9000, 500, 500};
  for (int i = 0; i < 10'000; ++i) text.ids.push_back(i < 9000 ? 0 : i < 9500 ? 1 : 2);
  Random(4).shuffle(text.ids);
  text.offsets = {0, 10'000};
  return text;
}

TEST(SkipGramPairs, SkipFrequentWords) {
  const WordStream text = skewed_text();
  SkipGramOptions options = small_options();
  options.subsample = 0.05;
  options.window = 1;
  PairBuckets buckets(WordPartition(static_cast<int64_t>(text.words.size())));
  PairSampler(text, options).sample(0, 1, 1, buckets);
  auto word = words_of(buckets.partition, 3);
  std::map<int32_t, double> inputs;
  for (const auto& bucket : buckets.pairs)
    for (const auto& pair : bucket) inputs[word.at(pair.input)] += pair.output >= 0;
  const double kept = 9000 * std::sqrt(0.05 / 0.9);  // √(t / f) of "the", all of the others
  EXPECT_NEAR(inputs[0] / 2, kept, 5 * std::sqrt(kept));
  EXPECT_NEAR(inputs[1] / 2, 500, 1);
  EXPECT_NEAR(inputs[2] / 2, 500, 1);
}

TEST(SkipGramPairs, DrawNoiseByThePowerOfThreeQuarters) {
  const WordStream text = skewed_text();
  SkipGramOptions options = small_options();
  options.window = 1;
  PairBuckets buckets(WordPartition(static_cast<int64_t>(text.words.size())));
  PairSampler(text, options).sample(0, 1, 1, buckets);
  auto word = words_of(buckets.partition, 3);
  std::map<int32_t, double> drawn;
  for (const auto& bucket : buckets.pairs)
    for (const auto& pair : bucket)
      if (pair.output < 0) ++drawn[word.at(~pair.output)];
  // A random word that equals the context word is skipped.
  const double the = std::pow(9000, 0.75) * (1 - 0.9), cat = std::pow(500, 0.75) * (1 - 0.05);
  EXPECT_NEAR(drawn[1] / drawn[0], cat / the, 0.07);
  EXPECT_NEAR(drawn[2] / drawn[0], cat / the, 0.07);
}

TEST(SkipGramPairs, EachWordHasARowOfItsPart) {
  for (const int32_t words : {1, 15, 16, 17, 1000}) {
    const WordPartition partition(words);
    std::vector<int> sizes(kParts, 0), owners(partition.rows(), 0);
    for (int32_t word = 0; word < words; ++word) {
      ++sizes[WordPartition::part_of(word)];
      ++owners.at(partition.row_of(word));
      EXPECT_EQ(partition.row_of(word) / (partition.rows() / kParts), WordPartition::part_of(word));
    }
    for (const int owner : owners) EXPECT_LE(owner, 1);
    for (const int size : sizes) EXPECT_NEAR(size, words / kParts, 1);
  }
}

}  // namespace
}  // namespace fovea
