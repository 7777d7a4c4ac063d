#include "train/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace fovea {

AppendFile::AppendFile(std::string path, Open how) : path_(std::move(path)) {
  // O_NONBLOCK: if the path is a FIFO, opening it must not block the run.
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK;
  fd_ = FileDescriptor(open(path_.c_str(), flags | (how == Open::only_new ? O_EXCL : 0), 0644));
  if (!is_open()) {
    if (how != Open::only_new || errno != EEXIST) warn_once("open", errno);
    return;
  }
  struct stat about;
  if (fstat(fd_.get(), &about) != 0 || !S_ISREG(about.st_mode)) {
    fd_.reset();
    warn_once("write", EINVAL);
  }
}

bool AppendFile::append(std::string_view record) {
  if (!is_open()) return false;
  const off_t before = lseek(fd_.get(), 0, SEEK_END);
  while (!record.empty()) {
    const ssize_t written = write(fd_.get(), record.data(), record.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int error = written < 0 ? errno : ENOSPC;
      if (before >= 0 && ftruncate(fd_.get(), before) != 0) warn_once("repair", errno);
      return warn_once("write", error);
    }
    record.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

bool AppendFile::sync() {
  if (!is_open()) return false;
  return fdatasync(fd_.get()) == 0 || warn_once("save", errno);
}

bool AppendFile::warn_once(std::string_view action, int error) {
  if (!warned_)
    log_warning("{}: cannot {}: {}; training continues without these records", path_, action,
                std::strerror(error));
  warned_ = true;
  return false;
}

}  // namespace fovea
