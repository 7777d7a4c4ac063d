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

// Closes a file descriptor when it goes out of scope; -1 means none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  ~Descriptor() { reset(); }
  int get() const { return fd_; }
  int release();
  void reset();

 private:
  int fd_;
};

// Throws Exit::files: "PATH: cannot WHAT: No space left on device".
[[noreturn]] void fail_errno(const std::string& path, std::string_view what, int error);

// Opens a regular file for reading. A directory, FIFO, device or socket is refused without
// waiting on it; every refusal is Exit::files and names the path.
Descriptor open_regular(const std::string& path);

// The same, or a FIFO, as the shell's <(…) gives one: for what is read once, from start to end.
// Waits until somebody opens the FIFO for writing.
Descriptor open_once(const std::string& path);

// The whole of a regular file. One longer than `limit` bytes is refused with `code`.
std::string read_file(const std::string& path, size_t limit = size_t{1} << 30,
                      Exit code = Exit::data);

// Writes all bytes, however often the system interrupts or shortens a write.
void write_fully(int fd, std::span<const std::byte> bytes, const std::string& path);

// A regular file mapped read-only. An empty file gives an empty span. If another program
// shortens the file while it is mapped, access past its end is a bus error: replace files
// by rename, as AtomicFile does.
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

// A file that appears whole or not at all: written under a temporary name in the same
// directory, then fsync, close, rename, fsync of the directory. Before commit() returns the
// old file stands untouched; a destructor without commit() removes the temporary.
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
  Descriptor fd_;
};

void write_atomically(const std::string& path, const std::function<void(AtomicFile&)>& writer);
void write_atomically(const std::string& path, std::string_view text);

// Makes a rename or unlink in `directory` survive a power cut.
void sync_directory(const std::string& directory);

// The part of a path before its last '/', "." if there is none.
std::string parent_directory(const std::string& path);

// Holds DIR/.lock with flock until destroyed, so that two programs never write one directory.
// Throws Exit::files "DIR is in use by pid P" if another holds it. The kernel drops the lock
// of a killed process, whose file stays.
class DirectoryLock {
 public:
  explicit DirectoryLock(const std::string& directory);
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;
  ~DirectoryLock();  // removes the file

 private:
  bool take(const std::string& directory);

  std::string path_;
  Descriptor fd_;
};

// Whether a program holds the lock of a directory.
bool is_locked(const std::string& directory);

}  // namespace fovea
