#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"

namespace fovea {

// One line that LineReader has read.
struct TextLine {
  std::string_view text;  // without the LF and a CR before it; valid until the next read
  int64_t number = 0;     // number of the line in the file, from 1
  bool cut = false;       // true: the line is longer than the limit; text is its beginning
};

// The numbers of lines that the reader read, cut or changed. Every command prints them in its
// summary.
struct LineCounts {
  int64_t lines = 0, cut = 0, carriage_returns = 0, byte_order_marks = 0;
};

class ByteSource;

// A reader of the lines of a plain file, a gzip file (name ends in .gz) or standard input ("-"). It
// keeps at most about `limit` bytes of a line in memory. Only LF ends a line. A last line without
// LF counts as a line.
//
// It removes and counts each CR before an LF, and a UTF-8 byte order mark at the start. It throws
// ExitCode::data for a file that is not text:
// - a UTF-16 or UTF-32 byte order mark, or NUL in every other byte at the start,
// - the first bytes of a compressed file,
// - at least ten of the first hundred lines, and more than half of them, are not UTF-8.
// It does not check other bytes (see utf8.h). If gzip data is damaged or truncated, it throws
// ExitCode::data with the file's name, line and byte.
class LineReader {
 public:
  static constexpr size_t kLimit = size_t{1} << 20;

  explicit LineReader(const std::string& path, size_t limit = kLimit);
  // Like the constructor, but also opens a FIFO, for commands that read their input once.
  static LineReader once(const std::string& path, size_t limit = kLimit);
  // Like the constructor, but reads from memory. `name` appears in messages. If `name` ends in .gz,
  // the bytes are gzip data.
  static LineReader over(std::string_view bytes, std::string name, size_t limit = kLimit);
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // Reads the next line. Returns false at the end of the file. Throws ExitCode::files if the system
  // cannot read.
  bool next(TextLine& line);

  // Returns true if no complete line is buffered and the pipe or terminal sends nothing for this
  // time. At the end, for regular files and for gzip, returns false.
  bool pauses(int milliseconds) const;

  const LineCounts& counts() const { return counts_; }
  const std::string& name() const { return name_; }
  std::string where() const;  // the location of the line read last: "train.en:4711"

 private:
  LineReader(std::unique_ptr<ByteSource> source, std::string name, size_t limit);
  bool refill();
  void check_beginning();
  void take_byte_order_mark();
  void check_is_text() const;
  void finish(TextLine& line);

  std::unique_ptr<ByteSource> source_;
  std::string name_, line_;
  std::string_view ahead_;  // bytes that are read but not yet returned as lines
  size_t limit_;
  LineCounts counts_;
  int64_t bad_lines_ = 0;  // number of lines that are not UTF-8 among the first lines
};

// A writer of a plain file, a gzip file (name ends in .gz) or standard output ("-"). It buffers
// bytes. close() writes the buffered bytes and throws ExitCode::files on failure. If close() was
// not called, the destructor discards the buffer. If the reader of a pipe has closed it (`| head`),
// a write or close() throws an Error. The file is not replaced atomically, so that pipes and
// /dev/stdout work.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  void write(std::string_view text);
  void write_line(std::string_view text);
  void flush();  // passes all bytes to the system, if a reader waits for them
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fovea
