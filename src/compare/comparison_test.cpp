#include "compare/comparison.h"

#include <gtest/gtest.h>

#include <fstream>

#include "temporary.h"

namespace fovea {
namespace {

TEST(LengthBuckets, HoldEverySentenceOnce) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 500; ++i) lengths.push_back(i % 37);
  const auto buckets = length_buckets(lengths, 5);
  ASSERT_GT(buckets.size(), 3u);
  std::vector<int> seen(lengths.size(), 0);
  for (const LengthBucket& bucket : buckets) {
    EXPECT_GE(std::ssize(bucket.lines), 20);
    EXPECT_GE(bucket.mean, static_cast<double>(bucket.low));
    EXPECT_LE(bucket.mean, static_cast<double>(bucket.high));
    for (const size_t line : bucket.lines) {
      ++seen[line];
      EXPECT_GE(lengths[line], bucket.low);
      EXPECT_LE(lengths[line], bucket.high);
    }
  }
  for (size_t i = 0; i < seen.size(); ++i) EXPECT_EQ(seen[i], lengths[i] > 0 ? 1 : 0);
  EXPECT_EQ(buckets.back().high, 36);
}

TEST(LengthBuckets, FewAreJoined) {
  std::vector<int64_t> lengths(100, 3);
  lengths.push_back(40);
  const auto buckets = length_buckets(lengths, 5);
  ASSERT_EQ(buckets.size(), 1u);
  EXPECT_EQ(buckets[0].lines.size(), 101u);
  EXPECT_EQ(buckets[0].high, 40);
  EXPECT_TRUE(length_buckets({}, 5).empty());
  EXPECT_TRUE(length_buckets({0, 0}, 5).empty());
  EXPECT_EQ(length_buckets({1}, 5).size(), 1u);
}

TEST(MeasuredFile, ComesBackUnlessMadeWithSomethingElse) {
  TemporaryFolder folder;
  const std::string directory = folder / "";
  EXPECT_FALSE(read_measured(directory, "a"));
  EXPECT_EQ(stored_key(directory), "");
  ModelResults m;
  m.ppl = 1.0 / 3;
  m.bleu = 35.123456789;
  m.chrf = 61;
  m.aer = 0.25;
  m.decode_words_per_s = 1234.5;
  m.bucket_bleu = {1, 2.5};
  m.translation = "ein \"Hund\" ü";
  write_measured(directory, "a", m);
  const auto back = read_measured(directory, "a");
  ASSERT_TRUE(back);
  EXPECT_EQ(stored_key(directory), "a");
  EXPECT_EQ(back->ppl, m.ppl);
  EXPECT_EQ(back->bleu, m.bleu);
  EXPECT_EQ(back->chrf, m.chrf);
  EXPECT_EQ(back->decode_words_per_s, m.decode_words_per_s);
  EXPECT_EQ(back->aer, m.aer);
  EXPECT_EQ(back->bucket_bleu, m.bucket_bleu);
  EXPECT_EQ(back->translation, m.translation);
  EXPECT_FALSE(read_measured(directory, "b"));
  m.aer.reset();
  write_measured(directory, "a", m);
  EXPECT_FALSE(read_measured(directory, "a")->aer);
  std::ofstream(folder / "measured.json") << "{\"made_with\": \"a\"";
  EXPECT_FALSE(read_measured(directory, "a"));
  EXPECT_EQ(stored_key(directory), "");
}

TEST(TrainingSpeed, IsTheMedianOfTheLog) {
  TemporaryFolder folder;
  EXPECT_FALSE(training_speed(folder / ""));
  std::ofstream log(folder / "metrics.jsonl");
  for (const int speed : {900, 10, 1000})
    log << "{\"kind\":\"train\",\"update\":1,\"epoch\":1,\"wall\":{\"words_per_"
           "s\":"
        << speed << "}}\n";
  log << "{\"kind\":\"valid\",\"update\":1,\"epoch\":1,\"ppl\":4,\"wall\":{"
         "\"time\":1}}\n";
  log.close();
  EXPECT_EQ(training_speed(folder / ""), 900);
}

}  // namespace
}  // namespace fovea
