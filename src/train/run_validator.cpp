#include "train/run_validator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/signals.h"
#include "ops/matmul.h"
#include "train/checkpoint.h"
#include "train/within_memory.h"

namespace fovea {
namespace {

constexpr int64_t kFewestTokens = 16;  // smaller validation batches are not halved

double named(const std::vector<MetricValue>& values, const std::string& name) {
  const auto at = std::ranges::find(values, name, &MetricValue::name);
  return at == values.end() ? std::nan("") : at->value;
}

bool better(const std::string& metric, double value, std::optional<double> best) {
  if (!best || std::isnan(value)) return !std::isnan(value);
  return higher_is_better(metric) ? value > *best : value < *best;
}

}  // namespace

RunValidator::RunValidator(const TrainTask& task, const Optimizer& optimizer,
                           UpdateExecutor& executor, RunFiles& files, RunReporter& reporter)
    : task_(task), options_(task.options), store_(task.weights.store()), optimizer_(optimizer),
      executor_(executor), files_(files), reporter_(reporter),
      changed_([weights = task.weights] { weights.changed(); }) {}

// Measures the model on `text`. If memory is short, tries again with batches of half the size.
RunValidator::Metrics RunValidator::measured(const HeldOut& text, const ValidOptions& options,
                                             const TrainState& state) {
  most_tokens_ = std::min(most_tokens_, executor_.part_tokens(state));
  const auto attempt = [&] {
    return measure(task_.weights.model(), text, options, most_tokens_, task_.translate,
                   stop_requested);
  };
  return within_memory(attempt, [&](const char* why, int64_t) {
    if (most_tokens_ < kFewestTokens) return false;
    executor_.disable_graphs();
    log_warning("validation with batches of {} tokens: {}; trying half that size",
                with_commas(most_tokens_), why);
    most_tokens_ /= 2;
    return true;
  });
}

bool RunValidator::validate(TrainState& state) {
  const BorrowedValues averaged(store_, optimizer_.ema(), changed_);
  std::vector<MetricValue> values;
  if (!task_.valid.empty()) {
    reporter_.validating();
    const Metrics found = measured(task_.valid, options_.valid, state);
    if (!found) return false;
    values = *found;
  }
  const FileSeries& snapshots = files_.snapshots();
  const auto write_snapshot = [&] { write_weights(snapshots.path(state.update), store_); };
  if (options_.train.average > 1 && files_.try_write(state, write_snapshot))
    snapshots.prune(state.update, options_.train.average);
  state.validated = state.update;
  keep_if_best(values, state);
  if (!values.empty()) reporter_.measured(state, {.kind = "valid", .values = values});
  return true;
}

void RunValidator::keep_if_best(const std::vector<MetricValue>& values, TrainState& state) {
  const std::string& metric = options_.valid.stop_metric;
  const double value = named(values, metric);
  const bool best = values.empty() || better(metric, value, state.best);
  state.since_best = best ? 0 : state.since_best + 1;
  if (!best || !files_.try_write(state, task_.write_model)) return;
  if (!values.empty()) state.best = value;
  state.best_update = state.update;
}

bool RunValidator::finish(const TrainState& state) {
  const BorrowedValues training(store_, store_.values(), changed_);  // restored at the end
  average(state);
  return test(state);
}

// Writes the mean of the last snapshots as the model, unless the best weights so far are better.
void RunValidator::average(const TrainState& state) {
  std::vector<std::string> paths;
  for (const int64_t number : files_.snapshots().numbers())
    if (number <= state.update) paths.push_back(files_.snapshots().path(number));
  const size_t most = static_cast<size_t>(options_.train.average);
  if (paths.size() > most) paths.erase(paths.begin(), paths.end() - options_.train.average);
  if (paths.size() < 2) return;
  const BorrowedValues averaged(store_, mean_weights(paths, store_), changed_);
  std::vector<MetricValue> values;
  if (!task_.valid.empty()) {
    const Metrics found = measured(task_.valid, options_.valid, state);
    if (!found) return;
    values = *found;
  }
  const std::string& metric = options_.valid.stop_metric;
  const bool best = values.empty() || better(metric, named(values, metric), state.best);
  values.push_back({"snapshots", static_cast<double>(paths.size())});
  reporter_.measured(state, {.kind = "average", .values = values});
  log_info("the final model is {}", best ? "the average of the last snapshots"
                                         : fmt::format("that of update {}", state.best_update));
  if (best) files_.try_write(state, task_.write_model);
}

bool RunValidator::test(const TrainState& state) {
  if (stop_requested() || task_.test.empty()) return !stop_requested();
  task_.read_model();
  changed_();
  ValidOptions options = options_.valid;
  options.metrics = options_.test_metrics();
  const Metrics values = measured(task_.test, options, state);
  if (values) reporter_.measured(state, {.kind = "test", .values = *values});
  return values.has_value();
}

}  // namespace fovea
