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
// `values` depend only on seed, data and build: two runs that have these in common write the same
// bytes. `wall` holds values that depend on the clock (time, words_per_s) and is always the last
// key. So without_wall(), or sed 's/,"wall":.*/}/', returns the part that a resumed run must
// reproduce.
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

// A writer that appends lines to the file at `path`. If a write fails, it logs a warning and does
// not throw.
class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path) : file_(path, AppendFile::Open::existing_or_new) {}
  bool write(const MetricsLine& metrics) { return file_.append(metrics_line(metrics)); }
  bool sync() { return file_.sync(); }  // call it before a checkpoint of these updates

 private:
  AppendFile file_;
};

// Removes incomplete lines and lines for which `keep` is false, keeps the others byte for byte, and
// replaces the file atomically. Does nothing if the file does not exist. Call it on resume, before
// a MetricsLog is opened.
void keep_metrics(const std::string& path, const std::function<bool(const MetricsLine&)>& keep);

// Reads all lines in order; null becomes NaN. Ignores a last line without '\n' (a killed run).
// Throws ExitCode::data with file and line for any other line that metrics_line() could not have
// written.
std::vector<MetricsLine> read_metrics(const std::string& path);

// A reader of a file that a run may still be writing. Each call of read() returns only new lines.
class MetricsTail {
 public:
  explicit MetricsTail(std::string path) : path_(std::move(path)) {}

  // The complete lines that were added since the last call; the first call returns all. A missing
  // file has no lines. Throws ExitCode::data like read_metrics().
  struct News {
    std::vector<MetricsLine> lines = {};
    bool replaced = false;  // a resumed run replaced the file; `lines` are all of its lines
  };
  News read();

 private:
  std::string path_;
  uint64_t file_ = 0;  // inode number; it differs after the file was replaced
  int64_t read_ = 0, lines_ = 0;
};

}  // namespace fovea
