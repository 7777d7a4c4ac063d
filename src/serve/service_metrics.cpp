#include "serve/service_metrics.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <fstream>

#include "tensor/device.h"

namespace fovea {
namespace {

std::string head(const std::string& name, const char* type, const char* help) {
  return fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

std::string simple(const std::string& name, const char* type, const char* help, double value) {
  return head(name, type, help) + fmt::format("{} {}\n", name, value);
}

const double kStarted = static_cast<double>(std::time(nullptr));

std::string process_figures() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) / 1e6;
  };
  long total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return simple("process_cpu_seconds_total", "counter", "Processor time used.",
                seconds(usage.ru_utime) + seconds(usage.ru_stime)) +
         simple("process_resident_memory_bytes", "gauge", "Memory in use.",
                static_cast<double>(resident) * page) +
         simple("process_start_time_seconds", "gauge", "Start, in seconds since 1970.", kStarted);
}

}  // namespace

std::string label_value(std::string_view text) {
  std::string escaped;
  for (const char c : text)
    escaped += c == '\n' ? "\\n" : c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return escaped;
}

Histogram::Histogram(std::vector<double> bounds)
    : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}

void Histogram::observe(double value) {
  const auto bucket = std::ranges::lower_bound(bounds_, value) - bounds_.begin();
  const std::lock_guard hold(mutex_);
  ++counts_[static_cast<size_t>(bucket)];
  ++count_;
  sum_ += value;
}

std::string Histogram::text(const std::string& name, const char* help) const {
  return head(name, "histogram", help) + lines(name, "");
}

std::string Histogram::lines(const std::string& name, const std::string& labels) const {
  const std::lock_guard hold(mutex_);
  const std::string others = labels.empty() ? "" : labels + ",";
  const std::string all = labels.empty() ? "" : "{" + labels + "}";
  std::string lines;
  uint64_t below = 0;
  for (size_t i = 0; i < bounds_.size(); ++i)
    lines +=
        fmt::format("{}_bucket{{{}le=\"{}\"}} {}\n", name, others, bounds_[i], below += counts_[i]);
  return lines + fmt::format("{}_bucket{{{}le=\"+Inf\"}} {}\n{}_sum{} {}\n{}_count{} {}\n", name,
                             others, count_, name, all, sum_, name, all, count_);
}

void ServiceMetrics::answered(const std::string& endpoint, const std::string& model, int status,
                              double seconds) {
  static const std::vector<double> bounds{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10};
  const std::lock_guard hold(mutex_);
  ++requests_[{endpoint, status}];
  durations_.try_emplace({endpoint, model}, bounds).first->second.observe(seconds);
}

void ServiceMetrics::refused(int status) {
  const std::lock_guard hold(mutex_);
  ++requests_[{"other", status}];
}

void ServiceMetrics::add_tokens(int64_t source, int64_t target) {
  source_tokens_ += source;
  target_tokens_ += target;
}

std::string ServiceMetrics::durations() const {
  const std::string name = "fovea_http_request_duration_seconds";
  std::string lines = head(name, "histogram", "Time to an answer, by endpoint and model.");
  const std::lock_guard hold(mutex_);
  for (const auto& [labels, histogram] : durations_) {
    std::string text = "endpoint=\"" + label_value(labels.first) + "\"";
    if (!labels.second.empty()) text += ",model=\"" + label_value(labels.second) + "\"";
    lines += histogram.lines(name, text);
  }
  return lines;
}

std::string ServiceMetrics::text(const Now& now) const {
  std::string lines =
      head("fovea_build_info", "gauge", "Version of the program; whether it was built with CUDA.");
  lines += fmt::format("fovea_build_info{{version=\"{}\",cuda=\"{}\"}} 1\n", FOVEA_VERSION,
                       std::variant_size_v<Device> > 1 ? "yes" : "no");
  lines += head("fovea_model_info", "gauge", "The models that are loaded.");
  for (const ModelLabel& m : now.models)
    lines += fmt::format(
        "fovea_model_info{{model=\"{}\",source=\"{}\",target=\"{}\",params=\"{}\"}} 1\n",
        label_value(m.model), label_value(m.source), label_value(m.target), m.parameters);
  lines += head("fovea_http_requests_total", "counter", "Requests answered.");
  {
    const std::lock_guard hold(mutex_);
    for (const auto& [key, count] : requests_)
      lines += fmt::format("fovea_http_requests_total{{endpoint=\"{}\",code=\"{}\"}} {}\n",
                           label_value(key.first), key.second, count);
  }
  const auto gauge = [](const char* name, const char* help, int64_t value) {
    return simple(name, "gauge", help, static_cast<double>(value));
  };
  const auto counter = [](const char* name, const char* help, double value) {
    return simple(name, "counter", help, value);
  };
  return lines + durations() +
         gauge("fovea_http_requests_in_flight", "Requests not answered yet.", in_flight) +
         gauge("fovea_http_connections", "Connections that are open.", now.connections) +
         gauge("fovea_queue_depth", "Requests that wait for a batch.", now.queue) +
         queue_wait.text("fovea_queue_wait_seconds",
                         "Longest wait of the sentences that join a batch.") +
         batch_sentences.text("fovea_batch_sentences", "Sentences of a batch at each step.") +
         batch_tokens.text("fovea_batch_tokens",
                           "Estimated cost of a batch at each step, in source pieces.") +
         counter("fovea_source_tokens_total", "Source pieces translated.",
                 static_cast<double>(source_tokens_)) +
         counter("fovea_target_tokens_total", "Target pieces written.",
                 static_cast<double>(target_tokens_)) +
         counter("fovea_translate_seconds_total", "Time spent translating.", translate_seconds) +
         process_figures();
}

}  // namespace fovea
