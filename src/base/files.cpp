#include "base/files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

namespace fovea {
namespace {

constexpr size_t kBuffer = size_t{1} << 16;

const char* kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "not a regular file";
}

size_t size_of_open_file(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) fail_errno(path, "inspect", errno);
  return static_cast<size_t>(status.st_size);
}

// Repeats the call while a signal interrupts it.
template <class Call>
auto uninterrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

// A name for a temporary file beside `path` that no other process or thread uses.
std::string temporary_name(const std::string& path) {
  static std::atomic<unsigned> count{0};
  return path + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(count++);
}

}  // namespace

void fail_errno(const std::string& path, std::string_view what, int error) {
  fail(ExitCode::files, path, ": cannot ", what, ": ", std::strerror(error));
}

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = other.release();
  }
  return *this;
}

int FileDescriptor::release() { return std::exchange(fd_, -1); }

void FileDescriptor::reset() {
  if (fd_ >= 0) close(release());
}

namespace {

FileDescriptor open_to_read(const std::string& path, int flags) {
  check(path.find('\0') == std::string::npos, ExitCode::files, "a file name contains a NUL byte");
  FileDescriptor fd(
      uninterrupted([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | flags); }));
  if (fd.get() < 0) fail_errno(path, "open", errno);
  return fd;
}

}  // namespace

FileDescriptor open_once(const std::string& path) {
  struct stat status {};
  const bool fifo = stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode);
  return fifo ? open_to_read(path, 0) : open_regular(path);
}

FileDescriptor open_regular(const std::string& path) {
  // Without O_NONBLOCK, opening a FIFO for reading would wait until another process opens it for
  // writing.
  FileDescriptor fd = open_to_read(path, O_NONBLOCK);
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) fail_errno(path, "inspect", errno);
  check(S_ISREG(status.st_mode), ExitCode::files, path, " is ", kind_of(status.st_mode),
        ", a regular file is expected");
  return fd;
}

std::string read_file(const std::string& path, size_t limit, ExitCode code) {
  const FileDescriptor fd = open_regular(path);
  std::string text;
  text.reserve(std::min(size_of_open_file(fd.get(), path), limit) + 1);
  std::string piece(kBuffer, '\0');
  for (;;) {
    const ssize_t n = uninterrupted([&] { return read(fd.get(), piece.data(), piece.size()); });
    if (n < 0) fail_errno(path, "read", errno);
    if (n == 0) return text;
    text.append(piece.data(), static_cast<size_t>(n));
    check(text.size() <= limit, code, path, " is larger than the ", limit, " bytes allowed here");
  }
}

void write_fully(int fd, std::span<const std::byte> bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = uninterrupted([&] { return write(fd, bytes.data(), bytes.size()); });
    if (n < 0) fail_errno(path, "write", errno);
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const FileDescriptor fd = open_regular(path);
  size_ = size_of_open_file(fd.get(), path);
  if (size_ == 0) return;
  void* at = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (at == MAP_FAILED) {
    check(errno != ENOMEM, ExitCode::memory, path, ": no memory to map ", size_, " bytes");
    fail_errno(path, "map", errno);
  }
  data_ = static_cast<const std::byte*>(at);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

AtomicFile::AtomicFile(std::string path)
    : path_(std::move(path)), temporary_(temporary_name(path_)) {
  struct stat status {};
  if (stat(path_.c_str(), &status) == 0)
    check(S_ISREG(status.st_mode), ExitCode::files, path_, " is ", kind_of(status.st_mode),
          ", it cannot be replaced by a file");
  fd_ = FileDescriptor(uninterrupted(
      [&] { return ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666); }));
  if (fd_.get() < 0) {
    const int error = errno;
    temporary_.clear();
    fail_errno(path_, "create a temporary file beside it", error);
  }
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  if (buffer_.size() + bytes.size() > kBuffer) flush();
  if (bytes.size() > kBuffer) return write_fully(fd_.get(), bytes, path_);
  buffer_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

void AtomicFile::flush() {
  write_fully(fd_.get(), as_byte_span(buffer_), path_);
  buffer_.clear();
}

void AtomicFile::commit() {
  flush();
  if (uninterrupted([&] { return fsync(fd_.get()); }) != 0) fail_errno(path_, "sync", errno);
  // If a signal interrupts close(), Linux has closed the file nevertheless.
  if (close(fd_.release()) != 0 && errno != EINTR) fail_errno(path_, "close", errno);
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_errno(path_, "rename its temporary file", errno);
  temporary_.clear();
  sync_directory(parent_directory(path_));
}

void write_atomically(const std::string& path, const std::function<void(AtomicFile&)>& writer) {
  AtomicFile file(path);
  writer(file);
  file.commit();
}

void write_atomically(const std::string& path, std::string_view text) {
  write_atomically(path, [&](AtomicFile& file) { file.write(text); });
}

void sync_directory(const std::string& directory) {
  const FileDescriptor fd(
      uninterrupted([&] { return ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
  if (fd.get() < 0) fail_errno(directory, "open", errno);
  // Some file systems (FUSE, some network mounts) do not support fsync of a directory.
  if (uninterrupted([&] { return fsync(fd.get()); }) != 0 && errno != EINVAL && errno != ENOTSUP)
    fail_errno(directory, "sync", errno);
}

std::string parent_directory(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

DirectoryLock::DirectoryLock(const std::string& directory) : path_(directory + "/.lock") {
  while (!take(directory)) {
  }
}

DirectoryLock::~DirectoryLock() { ::unlink(path_.c_str()); }

// Opens and locks the lock file. Returns false if its previous holder removed the file between our
// open() and our flock(). Then other processes would create a new file and not see our lock, so the
// caller must try again.
bool DirectoryLock::take(const std::string& directory) {
  const std::string& path = path_;
  fd_ = FileDescriptor(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666));
  if (fd_.get() < 0) fail_errno(path, "open", errno);
  struct stat status {};
  if (fstat(fd_.get(), &status) != 0) fail_errno(path, "inspect", errno);
  check(S_ISREG(status.st_mode), ExitCode::files, path, " is ", kind_of(status.st_mode),
        ", a regular file is expected");
  // is_locked() in another process holds the lock for a moment, so one failure is not enough.
  for (int tries = 1; flock(fd_.get(), LOCK_EX | LOCK_NB) != 0; ++tries) {
    const int error = errno;
    if (error != EWOULDBLOCK) fail_errno(path, "lock", error);
    if (tries < 5) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      continue;
    }
    char pid[32] = {};
    const ssize_t n = pread(fd_.get(), pid, sizeof pid - 1, 0);
    const std::string_view holder(pid, n > 0 ? std::strcspn(pid, "\n") : 0);
    fail(ExitCode::files, directory, " is in use by pid ", holder.empty() ? "unknown" : holder,
         "; wait for it to end, or choose another directory");
  }
  struct stat found {};
  if (::stat(path.c_str(), &found) != 0 || found.st_ino != status.st_ino) return false;
  if (ftruncate(fd_.get(), 0) != 0) fail_errno(path, "truncate", errno);
  write_fully(fd_.get(), as_byte_span(std::to_string(getpid()) + "\n"), path);
  return true;
}

bool is_locked(const std::string& directory) {
  const std::string path = directory + "/.lock";
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  return fd.get() >= 0 && flock(fd.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

}  // namespace fovea
