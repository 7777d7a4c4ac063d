#include "cli/whole_file.h"

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

// What a signal handler must remove; only what is safe in one may be done with it.
char unfinished[PATH_MAX + 1];

void remove_and_end(int signal) {
  unlink(unfinished);
  std::signal(signal, SIG_DFL);
  raise(signal);  // ends the program when this handler returns
}

void watch(const std::string& path) {
  if (path.size() > PATH_MAX) return;
  std::memcpy(unfinished, path.c_str(), path.size() + 1);
  for (const int signal : kSignals)
    if (std::signal(signal, remove_and_end) == SIG_IGN) std::signal(signal, SIG_IGN);  // nohup
}

void watch_no_more() {
  for (const int signal : kSignals)
    if (std::signal(signal, SIG_DFL) == SIG_IGN) std::signal(signal, SIG_IGN);
}

// Whether the name can be given to another file: not to a pipe or a device, nor to what a
// descriptor of the shell stands for.
bool replaceable(const std::string& path) {
  if (path == "-" || path.starts_with("/dev/") || path.starts_with("/proc/")) return false;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  return !fs::exists(status) || fs::is_regular_file(status);
}

}  // namespace

void check_writable(const std::string& output) {
  const AtomicFile probe(output);  // makes a temporary file there, and removes it
}

void check_not_overwritten(const std::string& input, const std::string& output) {
  std::error_code error;
  const bool same = input != "-" && std::filesystem::is_regular_file(output, error) &&
                    std::filesystem::equivalent(input, output, error);
  check(!same, Exit::usage, "-o ", output, ": is also the input; name another file");
}

WholeFile::WholeFile(const std::string& path) : path_(path) {
  if (replaceable(path)) open_beside();
  out_ = std::make_unique<OutputFile>(beside_.empty() ? path_ : beside_);
}

void WholeFile::open_beside() {
  std::error_code error;
  if (fs::is_symlink(path_, error)) path_ = fs::weakly_canonical(path_, error).string();
  const char* ending = path_.ends_with(".gz") ? ".gz" : "";  // tells OutputFile to compress
  beside_ = path_ + ".tmp-" + std::to_string(getpid()) + ending;
  watch(beside_);  // before it is there: a signal may come at once
  const Descriptor created(open(beside_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (created.get() >= 0) {
    const fs::file_status old = fs::status(path_, error);
    if (fs::exists(old)) fs::permissions(beside_, old.permissions(), error);
    return;
  }
  const int reason = errno;
  watch_no_more();
  beside_.clear();
  if (!fs::exists(path_, error)) fail_errno(path_, "create", reason);  // else: a closed folder
}

WholeFile::~WholeFile() {
  if (beside_.empty()) return;
  unlink(beside_.c_str());
  watch_no_more();
}

void WholeFile::close() {
  out_->close();
  if (beside_.empty()) return;
  if (rename(beside_.c_str(), path_.c_str()) != 0)
    fail_errno(path_, "rename its temporary file", errno);
  watch_no_more();
  beside_.clear();
}

}  // namespace fovea
