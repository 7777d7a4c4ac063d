#include "serve/keys.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "serve/file_store.h"
#include "temporary.h"

namespace fovea {
namespace {

TEST(RateLimiter, LetsSoManyThroughInAMinute) {
  RateLimiter limiter;
  auto now = RateLimiter::Clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limiter.ask("a", 5, now)) << i;
  const auto wait = limiter.ask("a", 5, now);
  ASSERT_TRUE(wait);
  EXPECT_NEAR(*wait, 12, 1e-6);
  EXPECT_FALSE(limiter.ask("b", 5, now)) << "others are not held up";
  EXPECT_TRUE(limiter.ask("a", 5, now + std::chrono::seconds(11)));
  EXPECT_FALSE(limiter.ask("a", 5, now + std::chrono::seconds(13)));
  EXPECT_FALSE(limiter.ask("c", 0, now)) << "0 is no limit";
}

TEST(RateLimiter, IsAccurateUnderAFlood) {
  RateLimiter limiter;
  const auto start = RateLimiter::Clock::now();
  int passed = 0;
  for (int i = 0; i < 600'000; ++i)
    passed += !limiter.ask("a", 60, start + std::chrono::milliseconds(i));
  EXPECT_NEAR(passed, 60 + 600, 1);
}

TEST(RateLimiter, ForgetsThoseNotSeenForLong) {
  RateLimiter limiter;
  const auto now = RateLimiter::Clock::now();
  for (int i = 0; i < 50'000; ++i) limiter.ask(std::to_string(i), 5, now);
  EXPECT_EQ(limiter.clients(), 10'000u);
}

TEST(ApiKeys, AreReadAndFoundWhole) {
  const ApiKeys keys = ApiKeys::parse("# ours\nalpha 60\nbeta\n\n gamma 0 # free\n", "keys", 7);
  ASSERT_TRUE(keys.find("alpha"));
  EXPECT_EQ(keys.find("alpha")->per_minute, 60);
  EXPECT_EQ(keys.find("beta")->per_minute, 7);
  EXPECT_EQ(keys.find("gamma")->per_minute, 0);
  for (const char* wrong : {"", "alph", "alphaa", "alpha ", "ALPHA", "ours", "#"})
    EXPECT_FALSE(keys.find(wrong)) << wrong;
  EXPECT_FALSE(keys.find(std::string("alpha\0", 6)));
  EXPECT_FALSE(keys.find(std::string(10 << 20, 'a')));
}

TEST(ApiKeys, MayHaveASignInsideThatBeginsComments) {
  const ApiKeys keys = ApiKeys::parse("ga#mma 3\n#de lta\n  # x\nbeta #5\n", "keys", 7);
  ASSERT_TRUE(keys.find("ga#mma"));
  EXPECT_EQ(keys.find("ga#mma")->per_minute, 3);
  ASSERT_TRUE(keys.find("beta"));
  EXPECT_EQ(keys.find("beta")->per_minute, 7);
  for (const char* wrong : {"ga", "#de", "#", "x"}) EXPECT_FALSE(keys.find(wrong)) << wrong;
}

TEST(ApiKeys, NameTheLineThatIsWrong) {
  for (const char* text : {"a\nb x\n", "a\nb -1\n", "a\nb 1 2\n"}) {
    const std::string message = message_of(Exit::data, [&] { ApiKeys::parse(text, "keys", 0); });
    EXPECT_NE(message.find("keys:2"), std::string::npos) << message;
  }
}

TEST(FileStore, ForgetsOldFilesAndHasRoomForNewOnes) {
  FileStore store;
  const auto now = FileStore::Clock::now();
  const std::string id = store.keep("a.txt", "text", now);
  EXPECT_EQ(id.size(), 36u);
  ASSERT_TRUE(store.find(id, now));
  EXPECT_EQ(store.find(id, now)->content, "text");
  EXPECT_FALSE(store.find("", now));
  EXPECT_FALSE(store.find(id, now + FileStore::kAge + std::chrono::seconds(1)));
  const std::string first = store.keep("a", std::string(40 << 20, 'x'), now);
  const std::string second = store.keep("b", std::string(40 << 20, 'y'), now);
  EXPECT_FALSE(store.find(first, now));
  EXPECT_TRUE(store.find(second, now));
  EXPECT_NE(first, second);
}

TEST(FileStore, EmptyFilesTakeRoomAsWell) {
  FileStore store;
  const auto now = FileStore::Clock::now();
  const std::string first = store.keep("a", "", now);
  std::string last;
  for (int i = 0; i < 20'000; ++i) last = store.keep("a", "", now);
  EXPECT_FALSE(store.find(first, now));
  EXPECT_TRUE(store.find(last, now));
}

}  // namespace
}  // namespace fovea
