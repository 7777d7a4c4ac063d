#include "train/tensorboard.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>

#include "support/event_file.h"
#include "support/tiny_training.h"
#include "temporary.h"

namespace fovea {
namespace {

using testing::messages;

TEST(TensorBoard, WritesTheGoldenFile) {
  const std::string golden =
      read_file(std::string(FOVEA_SOURCE) + "/tests/golden/golden.out.tfevents.1700000000.host");
  EXPECT_EQ(version_record(1700000000.0) + scalar_record("train/loss", 4.25f, 100, 1700000000.5),
            golden);
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

TEST(TensorBoard, FileNameIsRecognisedByTensorBoard) {
  const TemporaryFolder folder;
  const std::string name = std::filesystem::path(TensorBoard(folder.path()).path()).filename();
  EXPECT_TRUE(name.starts_with("events.out.tfevents.1") ||
              name.starts_with("events.out.tfevents.2"));
  EXPECT_TRUE(name.ends_with("." + std::to_string(getpid()) + ".0")) << name;
}

TEST(TensorBoard, AMissingFolderDoesNotStopTheRun) {
  const TemporaryFolder folder;
  { AppendFile file(folder / "plain", AppendFile::Open::only_new); }
  TensorBoard board(folder / "plain/below");
  EXPECT_FALSE(board.scalar("loss", 1, 1));
  EXPECT_FALSE(board.scalar("loss", 1, 2));
}

// TensorBoard has all figures of metrics.jsonl, also after the run was resumed.
TEST_F(TrainerTest, TensorBoardHasEveryMetric) {
  for (const int64_t stop : {30, 1000}) {
    train("a", [&](int64_t drawn, ParameterStore&) {
      if (drawn == stop) request_stop(SIGTERM);
    });
    request_stop(0);
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(directory("a") + "/tensorboard"))
    files.push_back(entry.path());
  std::ranges::sort(files);
  ASSERT_EQ(files.size(), 2u);
  std::vector<testing::Event> found;
  for (const fs::path& file : files)
    for (const std::string& message : messages(read_file(file.string()))) {
      const testing::Event event = testing::parse_event(message);
      if (!event.tag.empty())
        found.push_back(event);
      else
        EXPECT_TRUE(event.step == 0 || event.step == 15 + 1);  // a new run, or a resumed one
    }
  size_t at = 0;
  for (const MetricsLine& line : read_metrics(directory("a") + "/metrics.jsonl")) {
    for (const auto* list : {&line.values, &line.wall})
      for (const auto& [name, value] : *list) {
        if (name == "time") continue;
        ASSERT_LT(at, found.size());
        EXPECT_EQ(found[at].tag, line.kind + "/" + name);
        EXPECT_EQ(found[at].step, line.update);
        EXPECT_FLOAT_EQ(found[at].value, static_cast<float>(value)) << found[at].tag;
        EXPECT_NEAR(found[at].wall_time, static_cast<double>(std::time(nullptr)), 600);
        ++at;
      }
  }
  EXPECT_EQ(at, found.size());
  EXPECT_GT(at, 30u);
}

// A scope that limits the size of files to `bytes`, like a full disk.
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

TEST(AppendFile, AFullDiskLeavesCompleteRecords) {
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

TEST(AppendFile, DoesNotBlockOnAPipe) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  AppendFile file(folder / "pipe", AppendFile::Open::existing_or_new);
  EXPECT_FALSE(file.append("x"));
}

}  // namespace
}  // namespace fovea
