#include "train/tensorboard.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>

#include "base/crc32c.h"
#include "temporary.h"

namespace fovea {
namespace {

TEST(TensorBoard, WritesTheGoldenFile) {
  const std::string golden =
      read_file(std::string(FOVEA_SOURCE) + "/tests/golden/golden.out.tfevents.1700000000.host");
  EXPECT_EQ(version_record(1700000000.0) + scalar_record("train/loss", 4.25f, 100, 1700000000.5),
            golden);
}

// Splits a file into its messages; fails where a length or a checksum does not fit.
std::vector<std::string> messages(std::string_view file) {
  const auto number = [&](size_t at, int bytes) {
    uint64_t value = 0;
    for (int i = bytes; i-- > 0;)
      value = value << 8 | static_cast<unsigned char>(file[at + static_cast<size_t>(i)]);
    return value;
  };
  const auto masked = [](std::string_view bytes) {
    const uint32_t crc = crc32c_portable(as_byte_span(bytes));
    return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
  };
  std::vector<std::string> all;
  while (!file.empty()) {
    if (file.size() < 16) throw std::runtime_error("torn record");
    const size_t length = number(0, 8);
    EXPECT_EQ(number(8, 4), masked(file.substr(0, 8)));
    if (file.size() < 16 + length) throw std::runtime_error("torn record");
    all.emplace_back(file.substr(12, length));
    EXPECT_EQ(number(12 + length, 4), masked(all.back()));
    file.remove_prefix(16 + length);
  }
  return all;
}

TEST(TensorBoard, EachRecordIsOnDiskAtOnce) {
  const TemporaryFolder folder;
  TensorBoard board(folder / "runs/one");
  EXPECT_EQ(messages(read_file(board.path())).size(), 1u);
  EXPECT_TRUE(board.scalar("valid/bleu", 40.7, 12345));
  const auto all = messages(read_file(board.path()));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_NE(all[1].find("valid/bleu"), std::string::npos);
}

TEST(TensorBoard, ResumedRunsGetTheirOwnFile) {
  const TemporaryFolder folder;
  TensorBoard first(folder.path()), second(folder.path(), 500);
  EXPECT_NE(first.path(), second.path());
  const auto all = messages(read_file(second.path()));
  ASSERT_EQ(all.size(), 2u);
  // Event { 2: 501, 7: SessionLog { 1: START } }
  EXPECT_TRUE(all[1].ends_with(std::string("\x10\xf5\x03\x3a\x02\x08\x01")));
}

TEST(TensorBoard, NameIsWhatTensorBoardLooksFor) {
  const TemporaryFolder folder;
  const std::string name = std::filesystem::path(TensorBoard(folder.path()).path()).filename();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.1") ||
              name.starts_with("events.out.tfevents.2"));
  EXPECT_TRUE(name.ends_with("." + std::to_string(getpid()) + ".0")) << name;
}

TEST(TensorBoard, AMissingPlaceDoesNotStopTheRun) {
  const TemporaryFolder folder;
  { AppendFile file(folder / "plain", AppendFile::Open::only_new); }
  TensorBoard board(folder / "plain/below");
  EXPECT_FALSE(board.scalar("loss", 1, 1));
  EXPECT_FALSE(board.scalar("loss", 1, 2));
}

// Files may grow to `bytes` while it lives, as on a disk that fills up.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) {
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  FullDisk(const FullDisk&) = delete;
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

TEST(AppendFile, AFullDiskLeavesWholeRecords) {
  const TemporaryFolder folder;
  TensorBoard board(folder.path());
  ASSERT_TRUE(board.scalar("loss", 1, 1));
  {
    const FullDisk disk(100);
    EXPECT_FALSE(board.scalar("loss", 1, 2));
  }
  EXPECT_EQ(messages(read_file(board.path())).size(), 2u);
  EXPECT_TRUE(board.scalar("loss", 1, 3));
  EXPECT_EQ(messages(read_file(board.path())).size(), 3u);
}

TEST(AppendFile, DoesNotWaitOnAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  AppendFile file(folder / "pipe", AppendFile::Open::existing_or_new);
  EXPECT_FALSE(file.append("x"));
}

}  // namespace
}  // namespace fovea
