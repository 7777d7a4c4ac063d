#include "train/observer.h"

#include <chrono>
#include <cmath>
#include <optional>

#include "base/log.h"
#include "base/log_fields.h"
#include "train/tensorboard.h"

namespace fovea {
namespace {

std::string describe(const MetricValue& metric) {
  const auto& [name, value] = metric;
  if (name == "bleu" || name == "chrf" || name == "accuracy")
    return fmt::format(" | {} {:.2f}", name, value);
  if (name.ends_with("loss") || name == "ppl") return fmt::format(" | {} {:.4f}", name, value);
  if (name == "words_per_s")
    return fmt::format(" | {} words/s", with_commas(static_cast<int64_t>(value)));
  return fmt::format(" | {} {:.3g}", name, value);
}

std::string describe(const MetricsLine& metrics, int64_t updates) {
  const std::string of = updates > 0 ? " of " + with_commas(updates) : "";
  std::string text = fmt::format("{} | update {}{} | epoch {}", metrics.kind,
                                 with_commas(metrics.update), of, metrics.epoch);
  for (const auto* list : {&metrics.wall, &metrics.values})
    for (const MetricValue& metric : *list)
      if (metric.name != "time" && (metric.name != "skipped" || metric.value > 0))
        text += describe(metric);
  return text;
}

// Logs `text`, or with --log-format json a field for each figure.
void log_metrics(const MetricsLine& metrics, const std::string& text) {
  std::vector<LogField> fields{{"update", metrics.update}, {"epoch", metrics.epoch}};
  for (const auto* list : {&metrics.values, &metrics.wall})
    for (const auto& [name, value] : *list)
      if (name != "time") fields.push_back({name, value});
  log_event(metrics.kind, fields, text);
}

class Console : public TrainObserver {
 public:
  explicit Console(double label_smoothing)
      : loss_(label_smoothing > 0 ? "smoothed loss" : "loss") {}

  void began(const TrainState& state) override {
    start_ = state.update;
    begin_ = last_line_ = Clock::now();
    words_ = 0;
    progress_.reset();
  }

  void updated(const UpdateReport& r) override {
    updates_ = r.updates;
    words_ += r.words;
    if (log_format() != LogFormat::tty) return log_after_silence(r);
    if (!progress_) {
      progress_.emplace("training", r.updates, ProgressOptions{.unit = "updates"});
      progress_->begin_at(start_);
      begin_ = Clock::now();
    }
    last_ = r.update;
    progress_->note(state_of(r));
    progress_->set(r.update);
  }

  void validating() override {
    if (progress_) progress_->note("validating");
    if (progress_) progress_->set(last_);
  }

  void measured(const MetricsLine& metrics) override {
    last_line_ = Clock::now();
    if (metrics.kind != "train") return log_metrics(metrics, describe(metrics, 0));
    if (log_format() == LogFormat::tty) return;
    MetricsLine shown = metrics;
    for (MetricValue& metric : shown.values)
      if (metric.name == "loss") metric.name = loss_;
    log_metrics(metrics, describe(shown, updates_) + time_left(metrics.update));
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kSilence{30};

  // Logs a line if there was none for a while, so that the user sees progress between the regular
  // lines, which come every train.log_every updates.
  void log_after_silence(const UpdateReport& r) {
    if (Clock::now() - last_line_ < kSilence) return;
    last_line_ = Clock::now();
    const std::string of = updates_ > 0 ? " of " + with_commas(updates_) : "";
    log_info("train | update {}{} | epoch {} | {}{}", with_commas(r.update), of, r.epoch,
             state_of(r), time_left(r.update));
  }

  std::string state_of(const UpdateReport& r) const {
    const double seconds = since_begin();
    const double rate = seconds > 0 ? static_cast<double>(words_) / seconds : 0;
    return fmt::format("{} words/s | {} {:.4f} | ppl {:.4f} | lr {:.3g}",
                       with_commas(static_cast<int64_t>(rate)), loss_, r.loss, std::exp(r.nll),
                       r.rate);
  }

  double since_begin() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count();
  }

  std::string time_left(int64_t update) const {
    if (update <= start_ || update >= updates_) return "";
    const double each = since_begin() / static_cast<double>(update - start_);
    return fmt::format(" | {} left", short_duration(each * static_cast<double>(updates_ - update)));
  }

  std::string loss_;
  std::optional<Progress> progress_;
  Clock::time_point begin_, last_line_;
  int64_t start_ = 0, updates_ = 0, words_ = 0, last_ = 0;
};

// Whether a run that resumes at `state` keeps a line of metrics.jsonl. The run itself writes again
// the lines of later updates, and the lines of the same update that were written after the
// checkpoint.
bool is_before(const MetricsLine& line, const TrainState& state) {
  if (line.update != state.update || line.kind == "train") return line.update <= state.update;
  return line.kind == "valid" ? state.validated == state.update : state.finished;
}

class MetricsFile : public TrainObserver {
 public:
  explicit MetricsFile(std::string path) : path_(std::move(path)) {}

  void began(const TrainState& state) override {
    log_.reset();
    try {
      keep_metrics(path_, [&](const MetricsLine& line) { return is_before(line, state); });
    } catch (const Error& error) {
      log_warning("{}", error.what());  // an unreadable log must not stop the training
    }
    log_.emplace(path_);
  }
  void measured(const MetricsLine& metrics) override { log_->write(metrics); }
  void saving() override { log_->sync(); }

 private:
  std::string path_;
  std::optional<MetricsLog> log_;
};

class Board : public TrainObserver {
 public:
  explicit Board(std::string directory) : directory_(std::move(directory)) {}

  void began(const TrainState& state) override {
    board_.emplace(directory_, state.update > 0 ? std::optional(state.update) : std::nullopt);
  }
  void measured(const MetricsLine& metrics) override {
    for (const auto* list : {&metrics.values, &metrics.wall})
      for (const auto& [name, value] : *list)
        if (name != "time") board_->scalar(metrics.kind + "/" + name, value, metrics.update);
  }

 private:
  std::string directory_;
  std::optional<TensorBoard> board_;
};

}  // namespace

std::unique_ptr<TrainObserver> console_observer(double label_smoothing) {
  return std::make_unique<Console>(label_smoothing);
}

std::unique_ptr<TrainObserver> metrics_observer(const std::string& directory) {
  return std::make_unique<MetricsFile>(directory + "/metrics.jsonl");
}

std::unique_ptr<TrainObserver> tensorboard_observer(const std::string& directory) {
  return std::make_unique<Board>(directory + "/tensorboard");
}

}  // namespace fovea
