#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"

namespace fovea {

inline std::span<const std::byte> as_byte_span(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

// An owner of a file descriptor, which its destructor closes. −1 means that there is none.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd = -1) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { reset(); }
  int get() const { return fd_; }
  int release();
  void reset();

 private:
  int fd_;
};

// Throws ExitCode::files with a message such as "PATH: cannot WHAT: No space left on device".
[[noreturn]] void fail_errno(const std::string& path, std::string_view what, int error);

// Opens a regular file for reading. If the path is anything else (directory, FIFO, device, socket),
// throws ExitCode::files with the path and does not wait.
FileDescriptor open_regular(const std::string& path);

// Like open_regular(), but also opens a FIFO, such as the shell's <(…), and waits until another
// process opens the FIFO for writing. Use it for files that the program reads once, from start to
// end.
FileDescriptor open_once(const std::string& path);

// Returns the content of a regular file. If the file is longer than `limit` bytes, throws `code`.
std::string read_file(const std::string& path, size_t limit = size_t{1} << 30,
                      ExitCode code = ExitCode::data);

// Writes all bytes, even if a signal interrupts a write or the system writes only some of them.
void write_fully(int fd, std::span<const std::byte> bytes, const std::string& path);

// A regular file mapped read-only. An empty file gives an empty span. If another program shortens
// the mapped file, an access past its new end is a bus error. So programs must replace files by
// rename, as AtomicFile does.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

// A file that appears complete or not at all. The bytes go to a temporary file in the same
// directory. commit() calls fsync, close, rename and fsync of the directory. Until commit()
// returns, the old file does not change. Without commit() the destructor removes the temporary
// file.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(as_byte_span(text)); }
  void commit();

 private:
  void flush();
  std::string path_, temporary_, buffer_;
  FileDescriptor fd_;
};

void write_atomically(const std::string& path, const std::function<void(AtomicFile&)>& writer);
void write_atomically(const std::string& path, std::string_view text);

// Makes a rename or unlink in `directory` survive a power failure.
void sync_directory(const std::string& directory);

// The text of a path before its last '/', or "." if the path has no '/'.
std::string parent_directory(const std::string& path);

// A lock on a directory: holds DIR/.lock with flock until its destructor, so that two programs
// never write to one directory. Throws ExitCode::files "DIR is in use by pid P" if another process
// holds the lock. If a process is killed, the kernel releases the lock, but the file remains.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();  // unlocks and removes the file

 private:
  bool take(const std::string& directory);

  std::string path_;
  FileDescriptor fd_;
};

// Returns whether a process holds the lock of a directory.
bool is_locked(const std::string& directory);

}  // namespace fovea
