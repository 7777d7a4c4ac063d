#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "train/append_file.h"

namespace fovea {

struct Metric {
  std::string name;
  double value;
  bool operator==(const Metric&) const = default;
};

// One line of metrics.jsonl:
//   {"kind":"train","update":100,"epoch":1,"loss":4.25,"lr":0.0005,"wall":{"time":1.7e9}}
// `values` follow from seed, data and build alone: two runs that agree print the same bytes.
// `wall` holds what hangs on the clock (time, tokens_per_s) and always comes last, so that
// without_wall(), or  sed 's/,"wall":.*/}/',  leaves what a resumed run must reproduce.
struct Metrics {
  std::string kind = "train";  // "train", "valid"
  int64_t update = 0;
  int64_t epoch = 0;
  std::vector<Metric> values = {};
  std::vector<Metric> wall = {};

  std::optional<double> value(std::string_view name) const;  // among values, then wall
};

// Numbers as %.9g, which gives every float back exactly, whole numbers below 2⁵³ with all their
// digits; JSON has no infinities, so what is not finite is null. Ends in '\n'.
std::string metrics_line(const Metrics& metrics);
std::string_view without_wall(std::string_view line);  // without '\n' and the closing brace

// Adds lines to the file at `path`. A line that could not be written is a warning, not an error.
class MetricsLog {
 public:
  explicit MetricsLog(const std::string& path) : file_(path, AppendFile::Open::existing_or_new) {}
  bool write(const Metrics& metrics) { return file_.append(metrics_line(metrics)); }
  bool sync() { return file_.sync(); }  // call before a checkpoint that vouches for these lines

 private:
  AppendFile file_;
};

// Called before a MetricsLog is opened on resume: keeps the lines of updates ≤ `update` byte for
// byte, drops later ones and torn ones, and replaces the file atomically. A missing file stays
// missing. Lines of the resumed update itself must thus be written before its checkpoint.
void drop_metrics_after(const std::string& path, int64_t update);

// All lines in order; null becomes NaN. A last line without '\n' (a killed run) is passed over;
// any other line that is not such an object is Exit::data with file and line.
std::vector<Metrics> read_metrics(const std::string& path);

// Follows a file that a run may still be writing: what was read is not read again.
class MetricsTail {
 public:
  explicit MetricsTail(std::string path) : path_(std::move(path)) {}

  // The whole lines that have come since the last call, at first all of them. A file that is not
  // there has none. Exit::data as read_metrics.
  struct News {
    std::vector<Metrics> lines = {};
    bool anew = false;  // these are all: the file was replaced, as a run that is resumed may do
  };
  News read();

 private:
  std::string path_;
  uint64_t file_ = 0;  // its number, which a file that replaces it does not have
  int64_t read_ = 0, lines_ = 0;
};

}  // namespace fovea
