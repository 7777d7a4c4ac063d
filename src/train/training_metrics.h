#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/append_file.h"

namespace fovea {

struct MetricValue {
  std::string name;
  double value;
  bool operator==(const MetricValue&) const = default;
};

// One line of metrics.jsonl:
//   {"kind":"train","update":100,"epoch":1,"loss":4.25,"lr":0.0005,"wall":{"time":1.7e9}}
// `values` depend only on seed, data and build: two runs that have these in common print the same
// bytes. `wall` holds values that depend on the clock (time, words_per_s) and always comes last. So
// without_wall(), or  sed 's/,"wall":.*/}/',  leaves the part that a resumed run must reproduce.
struct MetricsLine {
  std::string kind = "train";  // "train", "valid", "average" or "test"
  int64_t update = 0;
  int64_t epoch = 0;
  std::vector<MetricValue> values = {};
  std::vector<MetricValue> wall = {};

  std::optional<double> value(std::string_view name) const;  // searches `values`, then `wall`
};

// Returns the line with its '\n'. Numbers are written as %.9g, from which every float can be read
// back exactly. Whole numbers below 2⁵³ have all their digits. Values that are not finite become
// null, because JSON has no infinities.
std::string metrics_line(const MetricsLine& metrics);
std::string_view without_wall(std::string_view line);  // without '\n' and the closing brace

// A writer that appends lines to the file at `path`. A failed write is a warning, not an error.
class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path) : file_(path, AppendFile::Open::existing_or_new) {}
  bool write(const MetricsLine& metrics) { return file_.append(metrics_line(metrics)); }
  bool sync() { return file_.sync(); }  // call before a checkpoint that includes these updates

 private:
  AppendFile file_;
};

// Removes incomplete lines and those for which `keep` is false, keeps the others byte for byte, and
// replaces the file atomically. Does nothing if the file does not exist. Call it on resume, before
// a MetricsLog is opened.
void keep_metrics(const std::string& path, const std::function<bool(const MetricsLine&)>& keep);

// Reads all lines in order; null becomes NaN. Ignores a last line without '\n' (a killed run).
// Throws ExitCode::data with file and line for any other line that is not such an object.
std::vector<MetricsLine> read_metrics(const std::string& path);

// A reader of a file that a run may still be writing. Each call of read() returns only new lines.
class MetricsTail {
 public:
  explicit MetricsTail(std::string path) : path_(std::move(path)) {}

  // Returns the complete lines since the last call; the first call returns all. A missing file has
  // no lines. Throws ExitCode::data as read_metrics().
  struct News {
    std::vector<MetricsLine> lines = {};
    bool replaced = false;  // `lines` are all lines: the file was replaced, as a resumed run may do
  };
  News read();

 private:
  std::string path_;
  uint64_t file_ = 0;  // inode number; a file that replaces this one has another
  int64_t read_ = 0, lines_ = 0;
};

}  // namespace fovea
