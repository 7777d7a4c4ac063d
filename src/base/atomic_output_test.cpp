#include "base/atomic_output.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>

#include "base/files.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

class WholeFileTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / ("whole-file-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  int64_t files() const {
    return std::distance(fs::directory_iterator(folder_), fs::directory_iterator());
  }

  fs::path folder_;
};

TEST_F(WholeFileTest, AppearsWhenItIsClosed) {
  for (const char* name : {"out", "out.gz"}) {
    WholeFile file(path(name));
    file.write("a line\n");
    file.flush();
    EXPECT_FALSE(fs::exists(path(name)));
    file.close();
    LineReader reader(path(name));
    TextLine line;
    ASSERT_TRUE(reader.next(line));
    EXPECT_EQ(line.text, "a line");
  }
  EXPECT_EQ(files(), 2);
}

TEST_F(WholeFileTest, AFailureKeepsTheOldFile) {
  std::ofstream(path("old")) << "old\n";
  for (const char* name : {"old", "new"}) {
    WholeFile file(path(name));
    file.write("half");
    file.flush();
  }
  EXPECT_EQ(read_file(path("old")), "old\n");
  EXPECT_EQ(files(), 1);
}

TEST_F(WholeFileTest, ASignalKeepsTheOldFile) {
  std::ofstream(path("old")) << "old\n";
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(signal, SIG_DFL);  // nohup and background jobs ignore some
      WholeFile file(path("old"));
      file.write("half");
      file.flush();
      raise(signal);
      _exit(0);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal) << status;
    EXPECT_EQ(read_file(path("old")), "old\n");
    EXPECT_EQ(files(), 1);
  }
}

// The signal arrives at any time, also while the program creates the temporary file.
TEST_F(WholeFileTest, ASignalRemovesTheTemporaryFile) {
  std::ofstream(path("old")) << "old\n";
  for (useconds_t i = 0; i < 200; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      std::signal(SIGTERM, SIG_DFL);
      for (;;) WholeFile file(path("old"));
    }
    usleep(1000 + 7 * i);
    kill(child, SIGTERM);
    waitpid(child, nullptr, 0);
    ASSERT_EQ(files(), 1) << i;
  }
}

TEST_F(WholeFileTest, KeepsLinksAndModes) {
  std::ofstream(path("real")) << "old\n";
  fs::permissions(path("real"), fs::perms::owner_read | fs::perms::owner_write);
  fs::create_symlink("real", path("link"));
  WholeFile file(path("link"));
  file.write("new\n");
  file.close();
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(read_file(path("real")), "new\n");
  EXPECT_EQ(fs::status(path("real")).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(files(), 2);
}

TEST_F(WholeFileTest, APipeGetsEachLineAsItComes) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const FileDescriptor reader(open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK));
  WholeFile file(path("pipe"));
  file.write("now\n");
  file.flush();
  char text[8] = {};
  EXPECT_EQ(read(reader.get(), text, sizeof text), 4);
  EXPECT_STREQ(text, "now\n");
  file.close();
  EXPECT_EQ(files(), 1);
}

TEST_F(WholeFileTest, AMissingFolderIsAnErrorWithThePath) {
  try {
    WholeFile file(path("none/out"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_NE(std::string(error.what()).find(path("none/out")), std::string::npos);
  }
}

}  // namespace
}  // namespace fovea
