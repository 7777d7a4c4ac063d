#include "http/api_keys.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "temporary.h"

namespace fovea {
namespace {

TEST(RateLimiter, LimitsTheRequestsPerMinute) {
  RateLimiter limiter;
  auto now = RateLimiter::Clock::now();
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(limiter.take("a", 5, now)) << i;
  const auto wait = limiter.take("a", 5, now);
  ASSERT_TRUE(wait);
  EXPECT_NEAR(*wait, 12, 1e-6);
  EXPECT_FALSE(limiter.take("b", 5, now)) << "other clients are not delayed";
  EXPECT_TRUE(limiter.take("a", 5, now + std::chrono::seconds(11)));
  EXPECT_FALSE(limiter.take("a", 5, now + std::chrono::seconds(13)));
  EXPECT_FALSE(limiter.take("c", 0, now)) << "0 is no limit";
}

TEST(RateLimiter, IsAccurateUnderAFlood) {
  RateLimiter limiter;
  const auto start = RateLimiter::Clock::now();
  int passed = 0;
  for (int i = 0; i < 600'000; ++i)
    passed += !limiter.take("a", 60, start + std::chrono::milliseconds(i));
  EXPECT_NEAR(passed, 60 + 600, 1);
}

TEST(RateLimiter, ForgetsTheOldestClients) {
  RateLimiter limiter;
  const auto now = RateLimiter::Clock::now();
  EXPECT_FALSE(limiter.take("once", 1, now));
  EXPECT_FALSE(limiter.take("often", 1, now));
  for (int i = 0; i < 50'000; ++i) {
    limiter.take(std::to_string(i), 5, now);
    if (i % 5'000 == 0) EXPECT_TRUE(limiter.take("often", 1, now)) << "forgotten after " << i;
  }
  EXPECT_EQ(limiter.clients(), 10'000u);
  EXPECT_FALSE(limiter.take("once", 1, now));
}

TEST(KeyGuard, SlowsDownGuessesOnly) {
  KeyGuard guard;
  const auto now = KeyGuard::Clock::now();
  guard.accept("a", "good");
  for (int i = 0; i < KeyGuard::kGuesses; ++i) {
    EXPECT_FALSE(guard.wait("a", "guess", now)) << i;
    guard.reject("a", now);
  }
  const auto wait = guard.wait("a", "guess", now);
  ASSERT_TRUE(wait);
  EXPECT_NEAR(*wait, 60.0 / KeyGuard::kGuesses, 1e-6);
  EXPECT_TRUE(guard.wait("a", "another good one", now)) << "a correct guess has to wait, too";
  EXPECT_FALSE(guard.wait("a", "good", now)) << "it was accepted before";
  EXPECT_FALSE(guard.wait("b", "guess", now)) << "another address";
  EXPECT_FALSE(guard.wait("a", "guess", now + std::chrono::seconds(7)));
  for (int i = 0; i < KeyGuard::kGuesses; ++i) guard.reject("b", now);
  EXPECT_TRUE(guard.wait("b", "good", now)) << "it was accepted from another address only";
}

TEST(KeyGuard, HasBoundedTables) {
  KeyGuard guard;
  const auto now = KeyGuard::Clock::now();
  for (const char* address : {"once", "often"})
    for (int i = 0; i < KeyGuard::kGuesses; ++i) guard.reject(address, now);
  guard.accept("once", "good");
  for (int i = 0; i < 20'000; ++i) {
    if (i % 5'000 == 0) guard.accept("often", "good");
    guard.accept(std::to_string(i), "good");
  }
  EXPECT_EQ(guard.known(), 10'000u);
  EXPECT_FALSE(guard.wait("often", "good", now));
  EXPECT_TRUE(guard.wait("once", "good", now)) << "forgotten";
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

TEST(ApiKeys, HaveTheLimitOfTheirLastLine) {
  const ApiKeys keys = ApiKeys::parse("a 1\nb 2\na 3\n", "keys", 7);
  ASSERT_TRUE(keys.find("a"));
  EXPECT_EQ(keys.find("a")->per_minute, 3);
  EXPECT_EQ(keys.find("b")->per_minute, 2);
}

TEST(ApiKeys, MayContainTheSignOfComments) {
  const ApiKeys keys = ApiKeys::parse("ga#mma 3\n#de lta\n  # x\nbeta #5\n", "keys", 7);
  ASSERT_TRUE(keys.find("ga#mma"));
  EXPECT_EQ(keys.find("ga#mma")->per_minute, 3);
  ASSERT_TRUE(keys.find("beta"));
  EXPECT_EQ(keys.find("beta")->per_minute, 7);
  for (const char* wrong : {"ga", "#de", "#", "x"}) EXPECT_FALSE(keys.find(wrong)) << wrong;
}

TEST(ApiKeys, HaveAMaximumLength) {
  const std::string longest(ApiKeys::kLongest, 'k');
  const ApiKeys keys = ApiKeys::parse(longest + "\n", "keys", 0);
  EXPECT_TRUE(keys.find(longest));
  for (const std::string& wrong : {longest + 'k', longest.substr(1), longest.substr(1) + 'x'})
    EXPECT_FALSE(keys.find(wrong)) << wrong.size();
}

TEST(ApiKeys, ErrorsNameTheLine) {
  const std::string too_long = "a\n" + std::string(ApiKeys::kLongest + 1, 'k') + "\n";
  for (const char* text : {"a\nb x\n", "a\nb -1\n", "a\nb 1 2\n", too_long.c_str()}) {
    const std::string message =
        message_of(ExitCode::data, [&] { ApiKeys::parse(text, "keys", 0); });
    EXPECT_NE(message.find("keys:2"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace fovea
