#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace fovea {

// A histogram of Prometheus: for each bound, the number of values up to this bound. Thread-safe.
class Histogram {
 public:
  explicit Histogram(std::vector<double> bounds);
  void observe(double value);
  std::string text(const std::string& name, const char* help) const;
  // Returns the lines of the histogram, without HELP and TYPE. Each line has these labels:
  // "a=\"x\"".
  std::string lines(const std::string& name, const std::string& labels) const;

 private:
  std::vector<double> bounds_;
  mutable std::mutex mutex_;
  std::vector<uint64_t> counts_;  // one more than bounds: +Inf
  double sum_ = 0;
  uint64_t count_ = 0;
};

// The labels of a model in the metrics.
struct ModelLabel {
  std::string model, source, target;
  int64_t parameters = 0;
};

// The metrics of the service in the text format of Prometheus (version 0.0.4). Thread-safe.
class ServiceMetrics {
 public:
  // Counts an answer. The number of different labels is limited, because endpoints and models are
  // those of the service, never strings of requests. `model` is empty if no model was used.
  void answered(const std::string& endpoint, const std::string& model, int status, double seconds);
  void refused(int status);  // counts a request that did not reach an endpoint
  void add_tokens(int64_t source, int64_t target);

  Histogram queue_wait{{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}};
  Histogram batch_sentences{{1, 2, 4, 8, 16, 32, 64, 128}};
  Histogram batch_tokens{{16, 64, 256, 512, 1024, 2048, 4096}};
  std::atomic<int64_t> in_flight{0};
  std::atomic<double> translate_seconds{0};

  // The values that text() reads at the time of the call.
  struct Now {
    int64_t queue = 0, connections = 0;
    std::vector<ModelLabel> models = {};
  };
  std::string text(const Now& now) const;

 private:
  std::string durations() const;

  mutable std::mutex mutex_;
  std::map<std::pair<std::string, int>, uint64_t> requests_;
  std::map<std::pair<std::string, std::string>, Histogram> durations_;  // by endpoint and model
  std::atomic<int64_t> source_tokens_{0}, target_tokens_{0};
};

std::string label_value(std::string_view text);  // with \, " and line ends escaped

}  // namespace fovea
