#include "serve/file_store.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

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
