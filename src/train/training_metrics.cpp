#include "train/training_metrics.h"

#include <sys/stat.h>

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/files.h"

namespace fovea {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kWall = ",\"wall\":{";

std::string digits(double value) {
  if (!std::isfinite(value)) return "null";
  char text[40];
  const bool whole = value == std::trunc(value) && std::abs(value) < 0x1p53;
  std::snprintf(text, sizeof text, whole ? "%.0f" : "%.9g", value);
  return text[0] == '-' && value == 0 ? "0" : text;
}

std::string quoted(const std::string& name) {
  return Json(name).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::vector<MetricValue> numbers(const Json& object, bool top_level) {
  std::vector<MetricValue> all;
  for (const auto& [name, value] : object.items()) {
    if (top_level && (name == "kind" || name == "update" || name == "epoch" || name == "wall"))
      continue;
    if (value.is_number()) all.push_back({name, value.get<double>()});
    if (value.is_null()) all.push_back({name, std::numeric_limits<double>::quiet_NaN()});
  }
  return all;
}

// Parses a line. Returns nothing if metrics_line() could not have written it.
std::optional<MetricsLine> parse(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return {};
  const auto kind = json.find("kind"), update = json.find("update"), epoch = json.find("epoch");
  if (kind == json.end() || !kind->is_string()) return {};
  if (update == json.end() || !update->is_number_integer()) return {};
  MetricsLine metrics{.kind = kind->get<std::string>(), .update = update->get<int64_t>()};
  if (epoch != json.end() && epoch->is_number_integer()) metrics.epoch = epoch->get<int64_t>();
  metrics.values = numbers(json, true);
  if (const auto wall = json.find("wall"); wall != json.end() && wall->is_object())
    metrics.wall = numbers(*wall, false);
  return metrics;
}

// Calls call(line, line number from 1) for each complete line. Text after the last '\n' is not a
// line.
template <class Call>
void for_each_line(std::string_view text, Call call) {
  int64_t number = 0;
  for (size_t end; (end = text.find('\n')) != text.npos; text.remove_prefix(end + 1))
    call(text.substr(0, end), ++number);
}

MetricsLine checked(std::string_view line, const std::string& path, int64_t number) {
  auto metrics = parse(line);
  check(metrics.has_value(), ExitCode::data, path, ":", number,
        ": not a line of metrics: a JSON object with \"kind\" and an integer \"update\" is "
        "expected; remove this line or restore the file");
  return std::move(*metrics);
}

}  // namespace

std::optional<double> MetricsLine::value(std::string_view name) const {
  for (const auto* group : {&values, &wall})
    for (const MetricValue& metric : *group)
      if (metric.name == name) return metric.value;
  return {};
}

std::string metrics_line(const MetricsLine& metrics) {
  std::string line = "{\"kind\":" + quoted(metrics.kind) +
                     ",\"update\":" + std::to_string(metrics.update) +
                     ",\"epoch\":" + std::to_string(metrics.epoch);
  for (const MetricValue& metric : metrics.values)
    line += "," + quoted(metric.name) + ":" + digits(metric.value);
  if (!metrics.wall.empty()) {
    line += kWall;
    for (const MetricValue& metric : metrics.wall)
      line += quoted(metric.name) + ":" + digits(metric.value) + ",";
    line.back() = '}';
  }
  return line + "}\n";
}

std::string_view without_wall(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (const size_t at = line.rfind(kWall); at != line.npos) return line.substr(0, at);
  if (line.ends_with('}')) line.remove_suffix(1);
  return line;
}

void keep_metrics(const std::string& path, const std::function<bool(const MetricsLine&)>& keep) {
  struct stat about;
  if (stat(path.c_str(), &about) != 0 && errno == ENOENT) return;
  const std::string text = read_file(path);
  std::string kept;
  for_each_line(text, [&](std::string_view line, int64_t) {
    const auto metrics = parse(line);
    if (metrics && keep(*metrics)) kept.append(line).append("\n");
  });
  if (kept != text) write_atomically(path, kept);
}

std::vector<MetricsLine> read_metrics(const std::string& path) {
  std::vector<MetricsLine> all;
  for_each_line(read_file(path), [&](std::string_view line, int64_t number) {
    all.push_back(checked(line, path, number));
  });
  return all;
}

MetricsTail::News MetricsTail::read() {
  News news;
  const std::unique_ptr<FILE, int (*)(FILE*)> in(std::fopen(path_.c_str(), "rb"), std::fclose);
  struct stat about;
  if (!in || fstat(fileno(in.get()), &about) != 0) return news;
  news.replaced = about.st_ino != file_ || about.st_size < read_;
  if (news.replaced) read_ = lines_ = 0;
  file_ = about.st_ino;
  if (about.st_size <= read_) return news;
  std::string text(static_cast<size_t>(about.st_size - read_), '\0');
  if (fseeko(in.get(), read_, SEEK_SET) != 0) return news;
  text.resize(std::fread(text.data(), 1, text.size(), in.get()));
  text.resize(text.rfind('\n') + 1);
  for_each_line(text, [&](std::string_view line, int64_t number) {
    news.lines.push_back(checked(line, path_, lines_ + number));
  });
  read_ += std::ssize(text);
  lines_ += std::ssize(news.lines);
  return news;
}

}  // namespace fovea
