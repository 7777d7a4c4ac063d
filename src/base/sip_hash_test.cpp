#include "base/sip_hash.h"

#include <gtest/gtest.h>

#include <string>
#include <unordered_set>

namespace fovea {
namespace {

// The examples of the paper and of the reference implementation.
TEST(SipHash, IsTheOneOfItsPaper) {
  const std::array<uint64_t, 2> secret{0x0706050403020100, 0x0f0e0d0c0b0a0908};
  std::string text;
  for (char c = 0; c < 15; ++c) text += c;
  EXPECT_EQ(sip_hash(secret, text), 0xa129ca6149be45e5u);
  EXPECT_EQ(sip_hash(secret, ""), 0x726fdb47dd0e0e31u);
}

TEST(TableHash, DependsOnEveryByteAndTheLength) {
  std::unordered_set<size_t> seen;
  size_t texts = 0;
  for (size_t length = 0; length < 40; ++length, ++texts) {
    const std::string text(length, '\0');
    EXPECT_EQ(TableHash()(text), TableHash()(text));
    seen.insert(TableHash()(text));
    for (size_t i = 0; i < length; ++i, ++texts) {
      std::string other = text;
      other[i] = '\x80';
      seen.insert(TableHash()(other));
    }
  }
  EXPECT_EQ(seen.size(), texts);
}

}  // namespace
}  // namespace fovea
