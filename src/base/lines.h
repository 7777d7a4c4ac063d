#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"

namespace fovea {

// One line that LineReader has read.
struct TextLine {
  std::string_view text;  // without its LF and one CR before it; lives until the next read
  int64_t number = 0;     // from 1
  bool cut = false;       // true: longer than the limit, so text is only its beginning
};

// Counts of lines that the reader read, cut or changed, for the summary that every command prints.
struct LineCounts {
  int64_t lines = 0, cut = 0, carriage_returns = 0, byte_order_marks = 0;
};

class ByteSource;

// A reader of the lines of a plain file, a gzip file (name ends in .gz) or standard input ("-"). It
// needs memory for `limit` bytes of a line. Only LF ends a line. A last line without LF counts.
//
// It removes and counts each CR before an LF, and a UTF-8 byte order mark at the start. It throws
// ExitCode::data for a file that is not text:
// - a UTF-16 or UTF-32 byte order mark, or NUL in every other byte at the start,
// - the first bytes of a compressed file,
// - at least ten of the first hundred lines, and more than half of them, are not UTF-8.
// It does not check other bytes (see utf8.h). For damaged or truncated gzip it throws
// ExitCode::data with the file's name, line and byte.
class LineReader {
 public:
  static constexpr size_t kLimit = size_t{1} << 20;

  explicit LineReader(const std::string& path, size_t limit = kLimit);
  // Like the constructor, but also opens a FIFO, for commands that read their input once.
  static LineReader once(const std::string& path, size_t limit = kLimit);
  // Reads from memory. `name` appears in messages. If `name` ends in .gz, the bytes are gzip.
  static LineReader over(std::string_view bytes, std::string name, size_t limit = kLimit);
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // Returns false at the end of the file. Throws ExitCode::files if the system cannot read.
  bool next(TextLine& line);

  // Returns true if no complete line is buffered and a pipe or a terminal sends nothing for this
  // time. Returns false at the end, for regular files and for gzip.
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
  std::string_view ahead_;  // read but not yet returned
  size_t limit_;
  LineCounts counts_;
  int64_t bad_lines_ = 0;  // how many of the first lines are not UTF-8
};

// A writer of a plain file, a gzip file (name ends in .gz) or standard output ("-"). It buffers
// bytes. close() writes the rest and throws ExitCode::files on failure. A destructor without
// close() discards the buffer. If the reader of a pipe closes it (`| head`), close() or a write
// throws an Error, too. The file does not appear atomically, so that pipes and /dev/stdout work.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  ~OutputFile();
  void write(std::string_view text);
  void write_line(std::string_view text);
  void flush();  // passes all bytes to the system, for readers that wait for them
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fovea
