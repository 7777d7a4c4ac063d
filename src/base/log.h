#pragma once

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace fovea {

// The format of messages. All messages go to stderr, because stdout carries only results.
enum class LogFormat { automatic, tty, plain, json };
enum class LogLevel { info, warning, error };

struct LogOptions {
  LogFormat format = LogFormat::automatic;  // automatic: tty if stderr is a terminal, else plain
  bool quiet = false;                       // warnings and errors only, no progress
};

// Sets the format of messages. Call it once at the start of a command; without it, messages are
// plain. Colours appear only in the tty format, and only if NO_COLOR is not set.
void start_log(const LogOptions& options);

// The format in use. If `automatic` was set, the format that it chose.
LogFormat log_format();

void log_message(LogLevel level, std::string_view message);

template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) {
  log_message(LogLevel::info, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) {
  log_message(LogLevel::warning, fmt::format(text, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) {
  log_message(LogLevel::error, fmt::format(text, std::forward<Args>(args)...));
}

// A counter of warnings about the lines of a text. It logs the first ten warnings. Its destructor
// logs the number of the other warnings, such as "and 41 more lines that are not UTF-8".
class LineWarnings {
 public:
  explicit LineWarnings(std::string what) : what_(std::move(what)) {}
  LineWarnings(const LineWarnings&) = delete;
  LineWarnings& operator=(const LineWarnings&) = delete;
  ~LineWarnings();

  template <class... Args>
  void add(fmt::format_string<Args...> text, Args&&... args) {
    if (++count_ <= kShown) log_warning(text, std::forward<Args>(args)...);
  }

 private:
  static constexpr int64_t kShown = 10;
  std::string what_;  // the noun in the message, such as "lines that are not UTF-8"
  int64_t count_ = 0;
};

// The number of columns of the terminal on stderr: TIOCGWINSZ, otherwise $COLUMNS, otherwise 80.
int terminal_width();

// Returns a number as "1,234,567".
std::string with_commas(int64_t number);

// Returns a duration as "42s", "3m07s" or "2h05m".
std::string short_duration(double seconds);

struct ProgressOptions {
  std::string unit;      // such as "updates", "lines"; shown as a rate
  double interval = 10;  // seconds between two progress lines if stderr is not a terminal
};

// The progress display of a long loop. On a terminal it is one line below the log messages, redrawn
// at most ten times a second. Otherwise it writes one line per interval, as JSON if the format is
// json. If the log is quiet, it writes nothing. If `total` is 0, the number of steps is unknown. At
// most one Progress may exist at a time.
class Progress {
 public:
  Progress(std::string what, int64_t total, ProgressOptions options = {});
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();                  // calls finish()
  void begin_at(int64_t done);  // for a resumed loop: rate and ETA count from here
  void set(int64_t done);
  void advance(int64_t n = 1) { set(done_ + n); }
  void note(std::string text) { note_ = std::move(text); }  // such as "loss 3.21 | lr 3.0e-4"
  void finish();                                            // shows the last state

 private:
  using Clock = std::chrono::steady_clock;
  double rate(double seconds) const;
  std::string bar(double seconds, int width) const;
  std::string json(double seconds) const;
  std::string text(double seconds) const;
  void show();

  std::string what_, note_;
  int64_t total_, done_ = 0, begun_at_ = 0;
  ProgressOptions options_;
  Clock::time_point begin_, shown_;
  bool finished_ = false;
};

}  // namespace fovea
