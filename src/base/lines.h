#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"

namespace fovea {

struct Line {
  std::string_view text;  // without its LF and one CR before it; lives until the next read
  int64_t number = 0;     // from 1
  bool cut = false;       // longer than the limit: text is its beginning, whole characters only
};

// What the reader changed or saw, for the summary that every command prints.
struct LineCounts {
  int64_t lines = 0, cut = 0, carriage_returns = 0, byte_order_marks = 0;
};

class ByteSource;

// Reads lines of a plain file, a gzip file (name ends in .gz) or standard input ("-"), in
// memory bounded by `limit` bytes per line. Only LF ends a line; a last line without LF
// counts. One CR before the LF and a UTF-8 byte order mark at the start are removed and
// counted. What is no text is Exit::data: a UTF-16 or UTF-32 mark, every other byte of the first
// NUL, the beginning of a compressed file, or among the first hundred lines ten and more than half
// that are not UTF-8. Bytes are not checked otherwise (see utf8.h). Damaged or truncated gzip is
// Exit::data with the file's name, line and byte.
class LineReader {
 public:
  static constexpr size_t kLimit = size_t{1} << 20;

  explicit LineReader(const std::string& path, size_t limit = kLimit);
  // Takes a FIFO too: for commands that read their input once.
  static LineReader once(const std::string& path, size_t limit = kLimit);
  // Reads from memory; `name` is used in messages, and makes the bytes gzip if it ends in .gz.
  static LineReader over(std::string_view bytes, std::string name, size_t limit = kLimit);
  LineReader(LineReader&&) noexcept;
  LineReader& operator=(LineReader&&) noexcept;
  ~LineReader();

  // False at the end of the file; throws Exit::files when the system cannot read on.
  bool next(Line& line);

  // True if no whole line has been read ahead, and the writer of a pipe or a terminal sends nothing
  // for this long. False at the end, for files and for what is compressed.
  bool pauses(int milliseconds) const;

  const LineCounts& counts() const { return counts_; }
  const std::string& name() const { return name_; }
  std::string where() const;  // "train.en:4711", the line read last

 private:
  LineReader(std::unique_ptr<ByteSource> source, std::string name, size_t limit);
  bool refill();
  void look_at_beginning();
  void take_byte_order_mark();
  void check_is_text() const;
  void finish(Line& line);

  std::unique_ptr<ByteSource> source_;
  std::string name_, line_;
  std::string_view ahead_;  // read but not yet returned
  size_t limit_;
  LineCounts counts_;
  int64_t bad_lines_ = 0;  // among the first
};

// Writes a plain file, a gzip file (name ends in .gz) or standard output ("-"). Bytes are
// buffered; close() writes the rest and reports what failed, as Exit::files. A destructor
// without close() drops what is still buffered. Standard output closed by its reader
// (`| head`) is an Error too. Not atomic, so that a pipe or /dev/stdout can be written.
class OutputFile {
 public:
  explicit OutputFile(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) noexcept;
  ~OutputFile();
  void write(std::string_view text);
  void write_line(std::string_view text);
  void flush();  // hands all bytes to the system, for programs that read along
  void close();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace fovea
