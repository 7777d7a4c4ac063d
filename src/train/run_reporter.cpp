#include "train/run_reporter.h"

#include <cmath>
#include <ctime>
#include <utility>

namespace fovea {
namespace {

double per_word(double sum, int64_t words) { return sum / static_cast<double>(words); }

}  // namespace

RunReporter::RunReporter(Observers observers, int64_t log_every)
    : observers_(std::move(observers)), log_every_(log_every), logged_(Clock::now()) {}

void RunReporter::began(const TrainState& state) {
  for (auto& observer : observers_) observer->began(state);
}

void RunReporter::validating() {
  for (auto& observer : observers_) observer->validating();
}

void RunReporter::saving() {
  for (auto& observer : observers_) observer->saving();
}

void RunReporter::updated(TrainState& state, const StepGraphs::StepResult& step, double rate,
                          int64_t updates) {
  const BatchCost& cost = step.cost;
  state.loss += cost.loss;
  state.nll += cost.nll;
  state.words += cost.words;
  state.guided += cost.guided;
  state.guided_words += cost.guided_words;
  const UpdateReport report{.update = state.update,
                            .updates = updates,
                            .epoch = state.last_epoch(),
                            .loss = per_word(cost.loss, cost.words),
                            .nll = per_word(cost.nll, cost.words),
                            .rate = rate,
                            .norm = per_word(step.norm, cost.words),
                            .words = cost.words};
  for (auto& observer : observers_) observer->updated(report);
  if (state.update % log_every_ == 0) log_training(state, rate, report.norm);
}

void RunReporter::log_training(TrainState& state, double rate, double norm) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - logged_).count();
  logged_ = now;
  MetricsLine metrics{.kind = "train",
                      .values = {{"loss", per_word(state.loss, state.words)},
                                 {"ppl", std::exp(per_word(state.nll, state.words))},
                                 {"lr", rate},
                                 {"norm", norm},
                                 {"skipped", static_cast<double>(state.skipped)}},
                      .wall = {{"words_per_s", static_cast<double>(state.words) / seconds}}};
  if (state.guided_words > 0)
    metrics.values.push_back({"guided", per_word(state.guided, state.guided_words)});
  measured(state, std::move(metrics));
  state.loss = state.nll = state.guided = 0;
  state.words = state.guided_words = 0;
}

void RunReporter::measured(const TrainState& state, MetricsLine metrics) {
  metrics.update = state.update;
  metrics.epoch = state.last_epoch();
  metrics.wall.push_back({"time", static_cast<double>(std::time(nullptr))});
  for (auto& observer : observers_) observer->measured(metrics);
}

}  // namespace fovea
