#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/lines.h"

namespace fovea {

// A line that was read, with its place for messages: "test.en:7".
struct ReadLine {
  std::string text, where;
  bool cut = false;  // its end is missing: longer than LineReader::kLimit
};

// The lines of a file, a FIFO or standard input ("-").
class TranslateInput {
 public:
  explicit TranslateInput(const std::string& file);

  bool next(ReadLine& line);  // false at the end
  // False if next() would wait for a writer who pauses. Files are always ready.
  bool ready() const;

  // The lines that come next, at least one, up to kDetectedBytes of text. If the writer pauses,
  // they end as soon as they are `enough`, and otherwise after a second. next() returns them again.
  using Enough = std::function<bool(const std::deque<ReadLine>&)>;
  const std::deque<ReadLine>& look_ahead(const Enough& enough);
  const std::string& name() const { return reader_.name(); }

 private:
  bool read(ReadLine& line);

  LineReader reader_;
  std::deque<ReadLine> ahead_ = {};
};

// The number of lines of the files together, standard input ("-") included; nothing if one of them
// is compressed or is not a regular file.
std::optional<int64_t> count_lines(const std::vector<std::string>& files);

}  // namespace fovea
