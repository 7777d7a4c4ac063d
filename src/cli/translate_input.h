#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/lines.h"

namespace fovea {

// A line of input, with its location for messages: "test.en:7".
struct ReadLine {
  std::string text, where;
  bool cut = false;  // whether the line was longer than LineReader::kLimit and lost its end
};

// A reader of the lines of a file, a FIFO or standard input ("-").
class TranslateInput {
 public:
  explicit TranslateInput(const std::string& file);

  bool next(ReadLine& line);  // false at the end
  // Returns false if next() would wait because the writer pauses. Files are always ready.
  bool ready() const;

  // Reads ahead, up to kDetectedBytes of text and at least one line unless the input is at its end.
  // If the writer pauses, stops reading when enough(lines) is true, or after a second. next()
  // returns the same lines again.
  using Enough = std::function<bool(const std::deque<ReadLine>&)>;
  const std::deque<ReadLine>& look_ahead(const Enough& enough);
  const std::string& name() const { return reader_.name(); }

 private:
  bool read(ReadLine& line);

  LineReader reader_;
  std::deque<ReadLine> ahead_ = {};
};

// Returns the total number of lines of the files, including standard input ("-"), or nothing if one
// of them is compressed or is not a regular file.
std::optional<int64_t> count_lines(const std::vector<std::string>& files);

}  // namespace fovea
