#include "base/atomic_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

// The name of the file that a signal handler must remove, or "". An array, because a handler may
// only use async-signal-safe functions.
char unfinished[PATH_MAX + 1];

void remove_and_end(int signal) {
  unlink(unfinished);
  std::signal(signal, SIG_DFL);
  raise(signal);  // ends the program as soon as this handler returns
}

void watch_signals_for(const std::string& path) {
  if (path.size() > PATH_MAX) return;
  std::memcpy(unfinished, path.c_str(), path.size() + 1);
  for (const int signal : kSignals)
    if (std::signal(signal, remove_and_end) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
}

void restore_signals() {
  for (const int signal : kSignals)
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
}

// Whether a rename can replace the file. A rename cannot replace a pipe, a device, or a descriptor
// of the shell such as /dev/stdout.
bool replaceable(const std::string& path) {
  if (path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")) return false;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !fs::exists(status) || fs::is_regular_file(status);
}

}  // namespace

void check_writable(const std::string& output) {
  const AtomicFile probe(output);  // creates a temporary file there and removes it
}

void check_not_overwritten(const std::string& input, const std::string& output) {
  std::error_code error;
  const bool same = input != "-" && std::filesystem::is_regular_file(output, error) &&
                    std::filesystem::equivalent(input, output, error);
  check(!same, ExitCode::usage, "`output` ", output, ": is also the input; name another file");
}

WholeFile::WholeFile(const std::string& path) : path_(path) {
  if (replaceable(path)) open_temporary();
  out_ = std::make_unique<OutputFile>(temporary_.empty() ? path_ : temporary_);
}

void WholeFile::open_temporary() {
  std::error_code error;
  if (fs::is_symlink(path_, error)) path_ = fs::weakly_canonical(path_, error).string();
  const char* ending = path_.ends_with(".gz") ? ".gz" : "";  // makes OutputFile compress
  temporary_ = path_ + ".tmp-" + std::to_string(getpid()) + ending;
  watch_signals_for(temporary_);  // before the file exists, because a signal may come at any time
  const FileDescriptor created(
      open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (created.get() >= 0) {
    const fs::file_status old = fs::status(path_, error);
    if (fs::exists(old)) fs::permissions(temporary_, old.permissions(), error);
    return;
  }
  const int reason = errno;
  restore_signals();
  temporary_.clear();
  // If the file exists, then only the directory is not writable, and the file is written directly.
  if (!fs::exists(path_, error)) fail_errno(path_, "create", reason);
}

WholeFile::~WholeFile() {
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  restore_signals();
}

void WholeFile::close() {
  out_->close();
  if (temporary_.empty()) return;
  if (rename(temporary_.c_str(), path_.c_str()) != 0)
    fail_errno(path_, "rename its temporary file", errno);
  restore_signals();
  temporary_.clear();
}

}  // namespace fovea
