#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/log_fields.h"
#include "base/log_wording.h"
#include "base/utf8.h"

namespace fovea {
namespace {

void write_stderr(std::string_view text) {
  while (!text.empty()) {  // if writing to stderr fails, no channel is left for a report
    const ssize_t n = write(STDERR_FILENO, text.data(), text.size());
    if (n <= 0) return;
    text.remove_prefix(static_cast<size_t>(n));
  }
}

std::string json_text(std::string_view text) {
  return nlohmann::json(replace_invalid_utf8(text)).dump();
}

std::string time_text(std::chrono::system_clock::time_point when, LogFormat format) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(when);
  std::tm parts{};
  const bool json = format == LogFormat::json;
  json ? gmtime_r(&seconds, &parts) : localtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, json ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%d %H:%M:%S", &parts);
  return text;
}

// Writes messages in the chosen format. Keeps messages and the progress line on separate lines.
class StderrSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void configure(LogFormat format, bool colour) {
    const std::lock_guard lock(mutex_);
    format_ = format;
    colour_ = colour;
  }
  LogFormat format() const { return format_; }

  // Replaces the progress line by `bar`. If `bar` is empty, removes the progress line.
  void draw(const std::string& bar) {
    const std::lock_guard lock(mutex_);
    if (bar.empty() && bar_.empty()) return;
    write_stderr("\r\x1b[K" + bar);
    bar_ = bar;
  }
  void end_progress_line() {  // so that the next text begins on a new line
    const std::lock_guard lock(mutex_);
    if (!bar_.empty()) write_stderr("\n");
    bar_.clear();
  }
  void line(const std::string& text) {
    const std::lock_guard lock(mutex_);
    write_stderr(text + "\n");
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    const std::string text = formatted(message);
    write_stderr(bar_.empty() ? text : "\r\x1b[K" + text + bar_);
  }
  void flush_() override {}

 private:
  std::string formatted(const spdlog::details::log_msg& message) const {
    const std::string_view text(message.payload.data(), message.payload.size());
    const bool error = message.level >= spdlog::level::err;
    const bool warning = message.level == spdlog::level::warn;
    const char* level = error ? "error" : warning ? "warning" : "";
    if (format_ == LogFormat::json)
      return fmt::format("{{\"time\":\"{}\",\"level\":\"{}\",\"message\":{}}}\n",
                         time_text(message.time, format_), error || warning ? level : "info",
                         json_text(text));
    std::string mark = error || warning ? fmt::format("{}: ", level) : "";
    if (colour_ && !mark.empty()) mark = fmt::format("\x1b[1;{}m{}\x1b[0m", error ? 31 : 33, mark);
    if (format_ == LogFormat::tty) return fmt::format("{}{}\n", mark, text);
    return fmt::format("[{}] {}{}\n", time_text(message.time, format_), mark, text);
  }

  LogFormat format_ = LogFormat::plain;
  bool colour_ = false;
  std::string bar_;
};

struct Log {
  std::shared_ptr<StderrSink> sink = std::make_shared<StderrSink>();
  spdlog::logger logger{"fovea", sink};
  bool quiet = false;
  LogWording wording = nullptr;
};

Log& the_log() {
  static Log log;
  return log;
}

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    default:
      return spdlog::level::err;
  }
}

// Returns `text`, cut to at most `columns` terminal columns after a whole character.
std::string fit(const std::string& text, int columns) {
  int used = 0;
  const CodePoints points = code_points(text);
  for (auto c = points.begin(); c != points.end(); ++c) {
    used += display_width(*c);
    if (used > columns) return text.substr(0, c.offset());
  }
  return text;
}

std::string rate_text(double rate) {
  if (rate >= 100) return with_commas(std::llround(rate));
  return fmt::format("{:.{}f}", rate, rate >= 10 ? 1 : 2);
}

}  // namespace

void start_log(const LogOptions& options) {
  LogFormat format = options.format;
  if (format == LogFormat::automatic)
    format = isatty(STDERR_FILENO) ? LogFormat::tty : LogFormat::plain;
  const char* no_color = std::getenv("NO_COLOR");
  const bool colour = format == LogFormat::tty && (no_color == nullptr || *no_color == '\0');
  the_log().sink->configure(format, colour);
  the_log().quiet = options.quiet;
  the_log().logger.set_level(options.quiet ? spdlog::level::warn : spdlog::level::info);
}

LogFormat log_format() { return the_log().sink->format(); }

void set_log_wording(LogWording wording) { the_log().wording = wording; }

void log_message(LogLevel level, std::string_view message) {
  std::string reworded;
  if (the_log().wording != nullptr) message = reworded = the_log().wording(message);
  the_log().logger.log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
}

void log_event(std::string_view event, std::span<const LogField> fields, std::string_view text) {
  if (log_format() != LogFormat::json) return log_message(LogLevel::info, text);
  if (!the_log().logger.should_log(spdlog::level::info)) return;
  std::string line =
      fmt::format("{{\"time\":\"{}\",\"level\":\"info\",\"message\":{}",
                  time_text(std::chrono::system_clock::now(), LogFormat::json), json_text(event));
  for (const LogField& field : fields) {
    line += "," + json_text(field.name) + ":";
    if (const auto* words = std::get_if<std::string>(&field.value))
      line += json_text(*words);
    else
      std::visit([&](const auto& value) { line += nlohmann::json(value).dump(); }, field.value);
  }
  the_log().sink->line(line + "}");
}

LineWarnings::~LineWarnings() {
  if (count_ > kShown) log_warning("and {} more {}", with_commas(count_ - kShown), what_);
}

int terminal_width() {
  winsize size{};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const char* columns = std::getenv("COLUMNS");
  const int width = columns == nullptr ? 0 : std::atoi(columns);
  return width > 0 ? std::min(width, 1000) : 80;
}

std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  const int first = number < 0 ? 1 : 0;
  for (int at = static_cast<int>(text.size()) - 3; at > first; at -= 3)
    text.insert(static_cast<size_t>(at), ",");
  return text;
}

std::string short_duration(double seconds) {
  const int64_t s = std::llround(std::clamp(seconds, 0.0, 1e9));
  if (s < 60) return fmt::format("{}s", s);
  if (s < 3600) return fmt::format("{}m{:02}s", s / 60, s % 60);
  if (s < 100 * 3600) return fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
  return fmt::format("{}d{:02}h", s / 86400, s / 3600 % 24);
}

Progress::Progress(std::string what, int64_t total, ProgressOptions options)
    : what_(std::move(what)), total_(total), options_(std::move(options)), begin_(Clock::now()),
      shown_(begin_) {}

Progress::~Progress() { finish(); }

void Progress::begin_at(int64_t done) { done_ = begun_at_ = done; }

void Progress::set(int64_t done) {
  done_ = done;
  const double minimum = log_format() == LogFormat::tty ? 0.1 : options_.interval;
  if (std::chrono::duration<double>(Clock::now() - shown_).count() >= minimum) show();
}

void Progress::finish() {
  if (finished_) return;
  finished_ = true;
  if (done_ > begun_at_) show();  // if an error came before the first step, no progress line
  the_log().sink->end_progress_line();
}

void Progress::show() {
  if (the_log().quiet) return;
  shown_ = Clock::now();
  const double seconds = std::chrono::duration<double>(shown_ - begin_).count();
  StderrSink& sink = *the_log().sink;
  switch (log_format()) {
    case LogFormat::tty:
      return sink.draw(bar(seconds, terminal_width() - 1));
    case LogFormat::json:
      return sink.line(json(seconds));
    default:
      return log_message(LogLevel::info, text(seconds));
  }
}

double Progress::rate(double seconds) const {
  return seconds > 0 ? static_cast<double>(done_ - begun_at_) / seconds : 0;
}

// Returns the progress after `seconds`: "train 1,200/10,000 (12 %) | 41.3 updates/s | eta 3m33s |
// loss 3.21".
std::string Progress::text(double seconds) const {
  const double per_second = rate(seconds);
  std::string out = what_ + " " + with_commas(done_);
  if (total_ > 0) out += fmt::format("/{} ({} %)", with_commas(total_), 100 * done_ / total_);
  if (!options_.unit.empty())
    out += fmt::format(" | {} {}/s", rate_text(per_second), options_.unit);
  if (finished_)
    out += " | took " + short_duration(seconds);
  else if (total_ > 0 && per_second > 0)
    out += " | eta " + short_duration(static_cast<double>(total_ - done_) / per_second);
  return note_.empty() ? out : out + " | " + note_;
}

std::string Progress::bar(double seconds, int width) const {
  const std::string words = text(seconds);
  const int space = std::min(30, width - display_width(words) - 3);
  if (total_ <= 0 || space < 5) return fit(words, width);
  const double share = std::clamp(static_cast<double>(done_) / static_cast<double>(total_), 0., 1.);
  const int full = static_cast<int>(share * space);
  return "[" + std::string(static_cast<size_t>(full), '=') +
         std::string(static_cast<size_t>(space - full), ' ') + "] " + words;
}

std::string Progress::json(double seconds) const {
  const double per_second = rate(seconds);
  std::string out = fmt::format(
      "{{\"time\":\"{}\",\"level\":\"progress\",\"what\":{},\"done\":{},\"total\":{},"
      "\"seconds\":{:.3f},\"rate\":{:.6g}",
      time_text(std::chrono::system_clock::now(), LogFormat::json), json_text(what_), done_, total_,
      seconds, per_second);
  if (total_ > 0 && per_second > 0)
    out += fmt::format(",\"eta\":{:.1f}", static_cast<double>(total_ - done_) / per_second);
  if (!note_.empty()) out += ",\"note\":" + json_text(note_);
  return out + (finished_ ? ",\"finished\":true}" : "}");
}

}  // namespace fovea
