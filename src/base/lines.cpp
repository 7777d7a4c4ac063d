#include "base/lines.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/utf8.h"

namespace fovea {
namespace {

constexpr size_t kBuffer = size_t{1} << 16;
constexpr int64_t kCheckedLines = 100, kFewBadLines = 10;
constexpr size_t kCheckedBytes = 1024;

bool is_gzip_name(std::string_view name) { return name.ends_with(".gz"); }

Bytef* zlib_bytes(std::string_view text) {
  return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
}

}  // namespace

// A source of bytes. read() returns the next bytes, and an empty view at the end.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::string_view read() = 0;
  // Returns whether read() would wait for at least this time.
  virtual bool pauses(int /*milliseconds*/) const { return false; }
};

namespace {

class DescriptorSource : public ByteSource {
 public:
  DescriptorSource(FileDescriptor fd, std::string name)
      : fd_(std::move(fd)), name_(std::move(name)), buffer_(kBuffer, '\0') {}

  std::string_view read() override {
    for (;;) {
      const ssize_t n = ::read(descriptor(), buffer_.data(), buffer_.size());
      if (n >= 0) return {buffer_.data(), static_cast<size_t>(n)};
      if (errno != EINTR) fail_errno(name_, "read", errno);
    }
  }

  bool pauses(int milliseconds) const override {
    pollfd input{.fd = descriptor(), .events = POLLIN, .revents = 0};
    return poll(&input, 1, milliseconds) == 0;
  }

 private:
  int descriptor() const { return fd_.get() < 0 ? STDIN_FILENO : fd_.get(); }

  FileDescriptor fd_;
  std::string name_, buffer_;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::string_view bytes) : bytes_(bytes) {}
  std::string_view read() override {
    const std::string_view piece = bytes_.substr(0, kBuffer);
    bytes_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view bytes_;
};

// Inflates one or more consecutive gzip members. Ignores zeros after a member, as gzip and Python's
// gzip do. (Zeros fill the last block of a tape.)
class GzipSource : public ByteSource {
 public:
  GzipSource(std::unique_ptr<ByteSource> from, std::string name)
      : from_(std::move(from)), name_(std::move(name)), buffer_(kBuffer, '\0') {
    check(inflateInit2(&zlib_, 15 + 16) == Z_OK, ExitCode::memory, name_, ": no memory for zlib");
  }
  GzipSource(const GzipSource&) = delete;
  ~GzipSource() override { inflateEnd(&zlib_); }

  std::string_view read() override {
    zlib_.next_out = zlib_bytes(buffer_);
    zlib_.avail_out = static_cast<uInt>(buffer_.size());
    while (zlib_.avail_out == buffer_.size()) {
      if (zlib_.avail_in == 0 && !refill()) {
        check(between_members_ && consumed_ > 0, ExitCode::data, name_,
              ": the gzip data ends early, at byte ", consumed_, "; the file is truncated");
        return {};
      }
      if (between_members_ && consumed_ > 0 && skip_padding()) continue;
      inflate_some();
    }
    return {buffer_.data(), buffer_.size() - zlib_.avail_out};
  }

 private:
  bool refill() {
    const std::string_view piece = from_->read();
    zlib_.next_in = zlib_bytes(piece);
    zlib_.avail_in = static_cast<uInt>(piece.size());
    return !piece.empty();
  }

  // Skips zeros after a member; another member would begin with 0x1F. Returns whether the input
  // buffer is now empty.
  bool skip_padding() {
    for (; zlib_.avail_in > 0 && *zlib_.next_in == 0; --zlib_.avail_in, ++zlib_.next_in)
      ++consumed_;
    return zlib_.avail_in == 0;
  }

  void inflate_some() {
    between_members_ = false;
    const uInt before = zlib_.avail_in;
    const int result = inflate(&zlib_, Z_NO_FLUSH);
    consumed_ += before - zlib_.avail_in;
    if (result == Z_STREAM_END) {
      inflateReset(&zlib_);
      between_members_ = true;
      return;
    }
    check(result != Z_MEM_ERROR, ExitCode::memory, name_, ": no memory for zlib");
    check(result == Z_OK || result == Z_BUF_ERROR, ExitCode::data, name_,
          ": damaged gzip data near byte ", consumed_, ": ",
          zlib_.msg == nullptr ? "unknown fault" : zlib_.msg);
  }

  std::unique_ptr<ByteSource> from_;
  std::string name_, buffer_;
  z_stream zlib_{};
  uint64_t consumed_ = 0;
  bool between_members_ = true;
};

std::unique_ptr<ByteSource> unpack(std::unique_ptr<ByteSource> source, const std::string& name) {
  if (!is_gzip_name(name)) return source;
  return std::make_unique<GzipSource>(std::move(source), name);
}

std::string display_name(const std::string& path) { return path == "-" ? "standard input" : path; }

std::unique_ptr<ByteSource> open_source(const std::string& path,
                                        FileDescriptor (*open)(const std::string&)) {
  FileDescriptor fd = path == "-" ? FileDescriptor() : open(path);
  return unpack(std::make_unique<DescriptorSource>(std::move(fd), path), path);
}

// Returns `text` without an incomplete UTF-8 sequence at its end.
std::string_view whole_characters(std::string_view text) {
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto b = static_cast<unsigned char>(text[text.size() - back]);
    if ((b & 0xC0) == 0x80) continue;
    const size_t needs = b >= 0xF0 ? 4 : b >= 0xE0 ? 3 : b >= 0xC0 ? 2 : 1;
    if (needs > back) text.remove_suffix(back);
    break;
  }
  return text;
}

// Returns the name of the encoding if the bytes look like UTF-16 without a byte order mark,
// otherwise null. In Latin text in UTF-16, every other byte is NUL; in UTF-8, NUL is very rare. NUL
// in half of the pairs of bytes suffices, because the text may also have characters such as curly
// quotation marks.
const char* unmarked_utf16(std::string_view bytes) {
  constexpr size_t kFewestPairs = 4;
  const size_t pairs = std::min(bytes.size(), kCheckedBytes) / 2;
  size_t first = 0, second = 0;  // number of pairs whose first byte (second byte) is NUL
  for (size_t i = 0; i < pairs; ++i) {
    first += bytes[2 * i] == '\0';
    second += bytes[2 * i + 1] == '\0';
  }
  if (pairs < kFewestPairs || 2 * std::max(first, second) < pairs) return nullptr;
  return first == 0 ? "UTF-16LE" : second == 0 ? "UTF-16BE" : nullptr;
}

[[noreturn]] void fail_encoding(const std::string& name, const std::string& encoding) {
  fail(ExitCode::data, name, ":1: the file is ", encoding,
       ", UTF-8 is expected; convert it first: iconv -f ", encoding, " -t utf8");
}

}  // namespace

LineReader::LineReader(std::unique_ptr<ByteSource> source, std::string name, size_t limit)
    : source_(std::move(source)), name_(std::move(name)), limit_(std::max<size_t>(limit, 4)) {}

LineReader::LineReader(const std::string& path, size_t limit)
    : LineReader(open_source(path, open_regular), display_name(path), limit) {}

LineReader LineReader::once(const std::string& path, size_t limit) {
  return {open_source(path, open_once), display_name(path), limit};
}

LineReader LineReader::over(std::string_view bytes, std::string name, size_t limit) {
  auto source = unpack(std::make_unique<MemorySource>(bytes), name);
  return LineReader(std::move(source), std::move(name), limit);
}

LineReader::LineReader(LineReader&&) noexcept = default;
LineReader& LineReader::operator=(LineReader&&) noexcept = default;
LineReader::~LineReader() = default;

std::string LineReader::where() const { return name_ + ":" + std::to_string(counts_.lines); }

bool LineReader::pauses(int milliseconds) const {
  return source_ != nullptr && ahead_.find('\n') == ahead_.npos && source_->pauses(milliseconds);
}

bool LineReader::refill() {
  if (source_ == nullptr) return false;
  try {
    ahead_ = source_->read();
  } catch (const Error& error) {
    fail(error.code(), error.what(), " (after line ", counts_.lines, ")");
  }
  if (ahead_.empty()) source_.reset();  // so that a terminal's end of file is read only once
  return !ahead_.empty();
}

bool LineReader::next(TextLine& line) {
  line_.clear();
  if (counts_.lines == 0 && refill())
    if (const char* encoding = unmarked_utf16(ahead_)) fail_encoding(name_, encoding);
  bool any = false, ended = false, cut = false;
  while (!ended && (!ahead_.empty() || refill())) {
    any = true;
    const size_t lf = ahead_.find('\n');
    ended = lf != std::string_view::npos;
    const std::string_view piece = ahead_.substr(0, lf);
    // Keep five bytes beyond the limit: three for the byte order mark at the start of a file, one
    // for a CR that finish() removes, and one that shows that the line is longer.
    const size_t space = limit_ + 5 - std::min(line_.size(), limit_ + 5);
    line_.append(piece.substr(0, space));
    cut |= piece.size() > space;
    ahead_.remove_prefix(ended ? lf + 1 : piece.size());
  }
  if (any) {
    ++counts_.lines;
    line.cut = cut;
    finish(line);
    if (counts_.lines <= kCheckedLines) bad_lines_ += !is_utf8(line.text);
  }
  if (any ? counts_.lines == kCheckedLines : counts_.lines < kCheckedLines) check_is_text();
  return any;
}

void LineReader::finish(TextLine& line) {
  if (counts_.lines == 1) check_beginning();
  line.text = line_;
  if (!line.cut && line.text.ends_with('\r')) {
    line.text.remove_suffix(1);
    ++counts_.carriage_returns;
  }
  if (line.cut || line.text.size() > limit_) {
    line.cut = true;
    line.text = whole_characters(line.text.substr(0, limit_));
    ++counts_.cut;
  }
  line.number = counts_.lines;
}

// Throws an Error if most of the first lines are not UTF-8, because then the file has another
// encoding. If only single lines are bad, the caller handles them.
void LineReader::check_is_text() const {
  const bool text = bad_lines_ < kFewBadLines || 2 * bad_lines_ <= counts_.lines;
  check(text, ExitCode::data, name_, ": ", bad_lines_, " of the first ", counts_.lines,
        " lines are not UTF-8; if it is Latin-1, convert it first: iconv -f latin1 -t utf8");
}

void LineReader::check_beginning() {
  struct Compression {
    std::string_view begins, kind, unpack;
  };
  static constexpr Compression kCompressions[] = {
      {"\x1F\x8B\x08", "gzip", "zcat, or give it a name that ends in .gz"},
      {"\xFD"
       "7zXZ",
       "xz", "xzcat"},
      {"\x28\xB5\x2F\xFD", "zstd", "zstdcat"},
      {"BZh91AY&SY", "bzip2", "bzcat"},
      {"PK\x03\x04", "zip", "unzip -p"},
  };
  for (const Compression& p : kCompressions)
    check(!line_.starts_with(p.begins), ExitCode::data, name_, ":1: the file is compressed with ",
          p.kind, ", text is expected; unpack it with ", p.unpack);
  take_byte_order_mark();
}

void LineReader::take_byte_order_mark() {
  using std::string_view_literals::operator""sv;
  const std::string_view start = line_;
  if (start.starts_with("\xEF\xBB\xBF")) {
    line_.erase(0, 3);
    ++counts_.byte_order_marks;
    return;
  }
  const char* encoding = start.starts_with("\xFF\xFE\0\0"sv)   ? "UTF-32LE"
                         : start.starts_with("\0\0\xFE\xFF"sv) ? "UTF-32BE"
                         : start.starts_with("\xFF\xFE")       ? "UTF-16LE"
                         : start.starts_with("\xFE\xFF")       ? "UTF-16BE"
                                                               : nullptr;
  if (encoding) fail_encoding(name_, encoding);
}

struct OutputFile::State {
  std::string path, buffer;
  FileDescriptor fd;  // -1: standard output
  bool gzip = false, packing = false;
  z_stream zlib{};

  ~State() {
    if (packing) deflateEnd(&zlib);
  }

  void put(std::string_view bytes) const {
    write_fully(fd.get() < 0 ? STDOUT_FILENO : fd.get(), as_byte_span(bytes), path);
  }

  void pack(std::string_view text, int flush) {
    std::string out(kBuffer, '\0');
    zlib.next_in = zlib_bytes(text);
    zlib.avail_in = static_cast<uInt>(text.size());
    do {
      zlib.next_out = zlib_bytes(out);
      zlib.avail_out = static_cast<uInt>(out.size());
      deflate(&zlib, flush);
      put(std::string_view(out).substr(0, out.size() - zlib.avail_out));
    } while (zlib.avail_out == 0);
  }

  void empty_buffer(int flush) {
    if (gzip)
      pack(buffer, flush);
    else
      put(buffer);
    buffer.clear();
  }
};

OutputFile::OutputFile(const std::string& path) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.path = path == "-" ? "standard output" : path;
  if (path == "-") return;
  s.fd = FileDescriptor(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (s.fd.get() < 0) fail_errno(path, "create", errno);
  s.gzip = is_gzip_name(path);
  if (!s.gzip) return;
  const int result = deflateInit2(&s.zlib, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  check(result == Z_OK, ExitCode::memory, path, ": no memory for zlib");
  s.packing = true;
}

OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view text) {
  check(state_ != nullptr, ExitCode::unexpected, "write to a closed output file");
  while (!text.empty()) {  // piece by piece, because zlib's lengths have 32 bits
    const std::string_view piece = text.substr(0, kBuffer);
    state_->buffer.append(piece);
    if (state_->buffer.size() >= kBuffer) state_->empty_buffer(Z_NO_FLUSH);
    text.remove_prefix(piece.size());
  }
}

void OutputFile::write_line(std::string_view text) {
  write(text);
  write("\n");
}

void OutputFile::flush() {
  if (state_ != nullptr) state_->empty_buffer(Z_SYNC_FLUSH);
}

void OutputFile::close() {
  if (state_ == nullptr) return;
  const auto state = std::move(state_);
  state->empty_buffer(Z_FINISH);
  if (state->fd.get() >= 0 && ::close(state->fd.release()) != 0)
    fail_errno(state->path, "close", errno);
}

}  // namespace fovea
