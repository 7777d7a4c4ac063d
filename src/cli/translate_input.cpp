#include "cli/translate_input.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/files.h"
#include "text/language_detector.h"

namespace fovea {
namespace {

// Milliseconds without a new line. After kPause the writer may be waiting for an answer. After
// kPatience the reader assumes that it is waiting.
constexpr int kPause = 20, kPatience = 1000;

std::optional<int64_t> lines_of(const std::string& file) {
  struct stat status {};  // before open(): opening and closing a FIFO would end its writer
  const bool piped = file == "-";
  if ((piped ? fstat(STDIN_FILENO, &status) : stat(file.c_str(), &status)) != 0) return {};
  if (!S_ISREG(status.st_mode) || file.ends_with(".gz")) return {};
  const FileDescriptor opened(piped ? dup(STDIN_FILENO) : open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (opened.get() < 0) return {};
  off_t offset = piped ? lseek(STDIN_FILENO, 0, SEEK_CUR) : 0;
  std::vector<char> buffer(1 << 20);
  int64_t lines = 0;
  char last = '\n';
  for (ssize_t n; (n = pread(opened.get(), buffer.data(), buffer.size(), offset)) > 0;
       offset += n) {
    lines += std::count(buffer.begin(), buffer.begin() + n, '\n');
    last = buffer[static_cast<size_t>(n) - 1];
  }
  return lines + (last != '\n');
}

}  // namespace

TranslateInput::TranslateInput(const std::string& file) : reader_(LineReader::once(file)) {}

bool TranslateInput::read(ReadLine& line) {
  TextLine found;
  if (!reader_.next(found)) return false;
  line = {std::string(found.text), reader_.where(), found.cut};
  return true;
}

bool TranslateInput::next(ReadLine& line) {
  if (ahead_.empty()) return read(line);
  line = std::move(ahead_.front());
  ahead_.pop_front();
  return true;
}

bool TranslateInput::ready() const { return !ahead_.empty() || !reader_.pauses(kPause); }

const std::deque<ReadLine>& TranslateInput::look_ahead(const Enough& enough) {
  size_t bytes = 0;
  for (ReadLine line; bytes < kDetectedBytes && read(line);) {
    bytes += line.text.size() + 1;
    ahead_.push_back(std::move(line));
    if (reader_.pauses(kPause) && (enough(ahead_) || reader_.pauses(kPatience))) break;
  }
  return ahead_;
}

std::optional<int64_t> count_lines(const std::vector<std::string>& files) {
  int64_t lines = 0;
  for (const std::string& file : files) {
    const std::optional<int64_t> found = lines_of(file);
    if (!found) return {};
    lines += *found;
  }
  return lines;
}

}  // namespace fovea
