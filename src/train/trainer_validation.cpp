#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/signals.h"
#include "ops/matmul.h"
#include "train/checkpoint_average.h"
#include "train/trainer.h"
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

// Measures the model. Halves the batches until memory suffices.
std::optional<std::vector<MetricValue>> Trainer::measured(const HeldOut& text,
                                                          const ValidOptions& options) {
  valid_tokens_ = std::min(valid_tokens_, executor_.part_tokens(state_));
  const auto attempt = [&] {
    return measure(task_.model, text, options, valid_tokens_, task_.translate, stop_requested);
  };
  return within_memory(attempt, [&](const char* why, int64_t) {
    if (valid_tokens_ < kFewestTokens) return false;
    executor_.disable_graphs();
    log_warning("validation with batches of {} tokens: {}; trying half that size",
                with_commas(valid_tokens_), why);
    valid_tokens_ /= 2;
    return true;
  });
}

void Trainer::validate() {
  const auto begin = std::chrono::steady_clock::now();
  const BorrowedValues averaged(store_, optimizer_.ema());
  std::vector<MetricValue> values;
  if (!task_.valid.empty()) {
    for (auto& observer : observers_) observer->validating();
    const auto found = measured(task_.valid, options_.valid);
    if (!found) return;  // asked to stop: the resumed run validates again
    values = *found;
  }
  if (options_.train.average > 1 && files_.try_write(state_, [&] {
        write_weights(files_.snapshots().path(state_.update), store_);
      }))
    files_.snapshots().prune(state_.update, options_.train.average);
  state_.validated = state_.update;
  save_tried_ = kNone;  // an earlier checkpoint of this update does not include the validation
  keep_if_best(values);
  if (!values.empty()) notify({.kind = "valid", .values = values});
  logged_ += std::chrono::steady_clock::now() - begin;  // not counted in words per second
}

// Writes the model if it is the best so far.
void Trainer::keep_if_best(const std::vector<MetricValue>& values) {
  const std::string& metric = options_.valid.stop_metric;
  const double value = named(values, metric);
  const bool best = values.empty() || better(metric, value, state_.best);
  state_.since_best = best ? 0 : state_.since_best + 1;
  if (!best || !files_.try_write(state_, task_.write_model)) return;
  if (!values.empty()) state_.best = value;
  state_.best_update = state_.update;
}

void Trainer::finish() {
  if (state_.finished) {
    log_info("training has already finished at update {}; nothing is left to do",
             with_commas(state_.update));
    return;
  }
  {
    const BorrowedValues training(store_, store_.values());  // restored for the checkpoint below
    average();
    state_.finished = test();
  }
  if (!state_.finished && save_tried_ == state_.update) return;
  state_.asked = !state_.finished;
  save();
}

// Makes the mean of the last snapshots the model, unless the best single one is better.
void Trainer::average() {
  std::vector<std::string> paths;
  for (const int64_t number : files_.snapshots().numbers())
    if (number <= state_.update) paths.push_back(files_.snapshots().path(number));
  const size_t most = static_cast<size_t>(options_.train.average);
  if (paths.size() > most) paths.erase(paths.begin(), paths.end() - options_.train.average);
  if (paths.size() < 2) return;
  const BorrowedValues averaged(store_, mean_weights(paths, store_));
  std::vector<MetricValue> values;
  if (!task_.valid.empty()) {
    const auto found = measured(task_.valid, options_.valid);
    if (!found) return;
    values = *found;
  }
  const std::string& metric = options_.valid.stop_metric;
  const bool best = values.empty() || better(metric, named(values, metric), state_.best);
  values.push_back({"snapshots", static_cast<double>(paths.size())});
  notify({.kind = "average", .values = values});
  log_info("the final model is {}", best ? "the average of the last snapshots"
                                         : fmt::format("that of update {}", state_.best_update));
  if (best) files_.try_write(state_, task_.write_model);
}

// Returns false if the program was asked to stop before the end.
bool Trainer::test() {
  if (stop_requested() || task_.test.empty()) return !stop_requested();
  task_.read_model();
  parameters_changed();
  ValidOptions options = options_.valid;
  options.metrics = options_.test_metrics();
  const auto values = measured(task_.test, options);
  if (values) notify({.kind = "test", .values = *values});
  return values.has_value();
}

}  // namespace fovea
