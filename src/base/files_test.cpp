#include "base/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "temporary.h"

namespace fovea {
namespace {

size_t entries(const std::string& folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(Files, ReadsWhole) {
  const TemporaryFolder folder;
  write_atomically(folder / "a", std::string(100'000, 'x'));
  EXPECT_EQ(read_file(folder / "a").size(), 100'000u);
  const std::string message =
      message_of(ExitCode::model, [&] { read_file(folder / "a", 10, ExitCode::model); });
  EXPECT_NE(message.find("larger than the 10 bytes"), std::string::npos);
}

TEST(Files, RefusesAllButRegularFiles) {
  const TemporaryFolder folder;
  ASSERT_EQ(mkfifo((folder / "fifo").c_str(), 0600), 0);
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  (folder / "socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  std::filesystem::create_symlink("loop", folder / "loop");
  std::filesystem::create_symlink("/dev/zero", folder / "link");
  const std::pair<std::string, std::string> cases[] = {
      {folder.path(), "is a directory"},     {folder / "fifo", "is a FIFO"},
      {"/dev/zero", "is a device"},          {folder / "link", "is a device"},
      {folder / "socket", "cannot open"},    {folder / "loop", "symbolic links"},
      {folder / "absent", "No such file"},   {"", "No such file"},
      {folder / "fifo/x", "Not a directory"}};
  for (const auto& one : cases) {
    const std::string &path = one.first, &says = one.second;
    for (const std::string& message :
         {message_of(ExitCode::files, [&] { read_file(path); }),
          message_of(ExitCode::files, [&] { MappedFile mapped(path); })}) {
      EXPECT_NE(message.find(says), std::string::npos) << message;
      EXPECT_TRUE(message.starts_with(path)) << message;
    }
  }
  message_of(ExitCode::files, [] { read_file(std::string("a\0b", 3)); });
  close(fd);
}

TEST(Files, MapsFiles) {
  const TemporaryFolder folder;
  write_atomically(folder / "a", "hello");
  write_atomically(folder / "empty", "");
  MappedFile a(folder / "a");
  EXPECT_EQ(a.bytes().size(), 5u);
  EXPECT_TRUE(MappedFile(folder / "empty").bytes().empty());
  MappedFile b = std::move(a);
  EXPECT_EQ(b.bytes()[4], std::byte{'o'});
  write_atomically(folder / "a", "other");  // the mapping still shows the old file
  EXPECT_EQ(b.bytes()[4], std::byte{'o'});
  EXPECT_EQ(b.bytes()[0], std::byte{'h'});
}

TEST(AtomicFile, AppearsOnlyOnCommit) {
  const TemporaryFolder folder;
  write_atomically(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write(std::string(300'000, 'n'));
    EXPECT_EQ(read_file(folder / "a"), "old");
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
  message_of(ExitCode::data, [&] {
    write_atomically(folder / "a", [](AtomicFile&) { fail(ExitCode::data, "stop"); });
  });
  EXPECT_EQ(read_file(folder / "a"), "old");
  write_atomically(folder / "a", "new");
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, NamesWithSpacesAndNewlines) {
  const TemporaryFolder folder;
  for (const char* name : {"a b", "ü", "new\nline", "-"}) {
    write_atomically(folder / name, name);
    EXPECT_EQ(read_file(folder / name), name);
  }
}

TEST(AtomicFile, FailsIfItCannotWrite) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "d");
  EXPECT_NE(message_of(ExitCode::files, [&] { AtomicFile file(folder / "d"); }).find("a directory"),
            std::string::npos);
  message_of(ExitCode::files, [&] { AtomicFile file(folder / "absent/a"); });
  message_of(ExitCode::files, [&] { AtomicFile file("/proc/a"); });
  message_of(ExitCode::files, [&] { AtomicFile file("/dev/null"); });
}

// A file size limit makes the kernel fail the write midway, as on a full disk.
TEST(AtomicFile, FailedWriteLeavesTheOldFile) {
  const TemporaryFolder folder;
  write_atomically(folder / "a", "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{100'000, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  const std::string message = message_of(
      ExitCode::files, [&] { write_atomically(folder / "a", std::string(1 << 20, 'n')); });
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_NE(message.find(folder / "a: cannot write: File too large"), std::string::npos) << message;
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(AtomicFile, FullFileSystemLeavesTheOldFile) {
  const TemporaryFolder folder;
  const std::string disk = folder / "disk";
  std::filesystem::create_directory(disk);
  if (mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=128k") != 0)
    GTEST_SKIP() << "needs the right to mount a tmpfs";
  write_atomically(disk + "/a", "old");
  const std::string message = message_of(
      ExitCode::files, [&] { write_atomically(disk + "/a", std::string(1 << 20, 'n')); });
  EXPECT_NE(message.find("/a: cannot write: No space left on device"), std::string::npos);
  EXPECT_EQ(read_file(disk + "/a"), "old");
  EXPECT_EQ(entries(disk), 1u);
  mount("tmpfs", disk.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "size=128k");
  message_of(ExitCode::files, [&] { write_atomically(disk + "/a", "new"); });
  EXPECT_EQ(read_file(disk + "/a"), "old");
  umount(disk.c_str());
}

TEST(Files, ParentDirectory) {
  EXPECT_EQ(parent_directory("a"), ".");
  EXPECT_EQ(parent_directory("/a"), "/");
  EXPECT_EQ(parent_directory("x/y/z"), "x/y");
}

TEST(DirectoryLock, NamesTheHolder) {
  const TemporaryFolder folder;
  {
    EXPECT_FALSE(is_locked(folder.path()));
    const DirectoryLock lock(folder.path());
    EXPECT_TRUE(is_locked(folder.path()));
    const std::string message =
        message_of(ExitCode::files, [&] { DirectoryLock second(folder.path()); });
    EXPECT_TRUE(
        message.starts_with(folder.path() + " is in use by pid " + std::to_string(getpid()) + ";"))
        << message;
  }
  EXPECT_FALSE(is_locked(folder.path()));
  EXPECT_FALSE(std::filesystem::exists(folder / ".lock"));
  const DirectoryLock again(folder.path());
  EXPECT_TRUE(std::filesystem::exists(folder / ".lock"));
  message_of(ExitCode::files, [&] { DirectoryLock lock(folder / "absent"); });
}

TEST(DirectoryLock, EndsWithItsProcess) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    const DirectoryLock lock(folder.path());
    [[maybe_unused]] const ssize_t n = write(ready[1], "x", 1);
    pause();
    _exit(0);
  }
  char c;
  ASSERT_EQ(read(ready[0], &c, 1), 1);
  const std::string message =
      message_of(ExitCode::files, [&] { DirectoryLock second(folder.path()); });
  EXPECT_NE(message.find("pid " + std::to_string(child) + ";"), std::string::npos) << message;
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const DirectoryLock after(folder.path());
  close(ready[0]);
  close(ready[1]);
}

}  // namespace
}  // namespace fovea
