#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/signals.h"
#include "ops/matmul.h"
#include "train/within_memory.h"

namespace fovea {
namespace {

constexpr int64_t kSkipsBeforeRollback = 10, kMostRollbacks = 3, kMostRises = 3;
constexpr double kSlowerAfterRollback = 0.5;

double per_word(double sum, int64_t words) { return sum / static_cast<double>(words); }

}  // namespace

Trainer::Trainer(TrainTask task, Observers observers)
    : task_(std::move(task)), options_(task_.options), store_(task_.model.parameters()),
      optimizer_(store_, options_.optimizer),
      executor_(task_.model, optimizer_, task_.text, options_, task_.disturb),
      reporter_(std::move(observers), options_.train.log_every), files_(task_),
      validator_(task_, optimizer_, executor_, files_, reporter_) {}

RunOutcome Trainer::run() {
  const PrecisionScope precision(options_.train.precision);
  begin();
  for (;;) {
    if (stop_requested()) {
      if (save_tried_ != state_.update) state_.asked = !save_due();
      save();
      return RunOutcome::interrupted;
    }
    if (validation_due()) {
      validate();
    } else if (save_due()) {
      save();
      task_.save_requested();  // this save also answers a request
    } else if (save_asked()) {
      save();
    } else if (at_the_end()) {
      break;
    } else {
      make_update();
    }
  }
  finish();
  return stop_requested() && !state_.finished ? RunOutcome::interrupted : RunOutcome::finished;
}

// If there is not enough memory, saves the weights before the error ends the run.
void Trainer::validate() {
  const auto begin = RunReporter::Clock::now();
  const bool done = within_memory([&] { return validator_.validate(state_); },
                                  [&](const char*, int64_t) {
                                    save();
                                    return false;
                                  });
  if (!done) return;    // the resumed run validates again
  save_tried_ = kNone;  // an earlier checkpoint of this update does not include the validation
  reporter_.exclude_time_since(begin);
}

void Trainer::begin() {
  const auto now = RunReporter::Clock::now();
  files_.prepare();
  const std::vector<int64_t> updates = files_.checkpoints().numbers();
  const auto restored = restore_newest(files_.checkpoints(), updates, store_, optimizer_,
                                       task_.identity, task_.resume);
  if (restored) resume(*restored);
  if (!restored) check_free_space();
  stream_ = std::make_unique<BatchStream>(task_.text, options_.batch, state_.epoch, state_.batch,
                                          restored ? restored->path : "");
  find_expendable();
  optimizer_.freeze(task_.frozen);
  reporter_.began(state_);
  reporter_.exclude_time_since(now);
}

int64_t Trainer::updates_in_all() const {
  const LoopOptions& loop = options_.train;
  if (loop.epochs == 0) return loop.updates;
  const int64_t batches =
      std::max<int64_t>(0, (loop.epochs - state_.epoch) * stream_->batches() - state_.batch);
  const int64_t all = state_.update + (batches + loop.accumulate - 1) / loop.accumulate;
  return loop.updates > 0 ? std::min(all, loop.updates) : all;
}

bool Trainer::validation_due() const {
  if (state_.update == 0 || state_.validated == state_.update) return false;
  const int64_t every = options_.valid.every;
  const bool late = state_.update - std::max<int64_t>(state_.validated, 0) >= options_.valid.apart;
  const bool due =
      every > 0 ? state_.update % every == 0 : late && state_.epoch_ended == state_.update;
  return due || at_the_end();
}

// Weights that a rollback may discard are not saved: a save that is due waits until the loss is in
// its usual range.
bool Trainer::save_due() {
  if (save_tried_ == state_.update) return false;
  const int64_t every = options_.checkpoint.every;
  state_.save_waits = state_.save_waits || state_.update == 0 ||
                      state_.validated == state_.update ||
                      (every > 0 && state_.update % every == 0);
  state_.asked = false;
  return state_.save_waits && state_.watch.high == 0;
}

bool Trainer::save_asked() {
  if (save_tried_ == state_.update || !task_.save_requested()) return false;
  return state_.asked = true;
}

void Trainer::make_update() {
  const Step step = compute();
  if (step.fault.empty()) {
    const bool rise = state_.watch.take(loss_per_word(step));
    if (!rise || !undo_rise(step)) record(step);
  } else if (state_.skipped_in_a_row + 1 < kSkipsBeforeRollback) {
    skip(step);
  } else {
    roll_back(step);
  }
}

double Trainer::loss_per_word(const Step& step) {
  return per_word(step.result.cost.loss, step.result.cost.words);
}

// Computes the gradient of the next batches and makes an update, unless it has a fault.
Trainer::Step Trainer::compute() {
  const int64_t t = state_.update + 1, epoch = stream_->epoch();
  const std::vector<PairBatch> batches = stream_->take(options_.train.accumulate);
  lines_ = first_lines(batches);
  Step step;
  step.rate = state_.rate_factor * learning_rate(options_.schedule, t, options_.model.size);
  step.result = executor_.update(batches, step.rate, state_);
  state_.drawn += options_.train.accumulate;
  state_.epoch = stream_->epoch();
  state_.batch = stream_->batch();
  if (state_.epoch != epoch) state_.epoch_ended = t;
  step.fault = find_fault(step.result, store_);
  return step;
}

void Trainer::record(const Step& step) {
  const BatchCost& cost = step.result.cost;
  ++state_.update;
  state_.finished = false;
  state_.skipped_in_a_row = 0;
  const UpdateReport report{.update = state_.update,
                            .updates = updates_in_all(),
                            .epoch = state_.last_epoch(),
                            .loss = per_word(cost.loss, cost.words),
                            .nll = per_word(cost.nll, cost.words),
                            .rate = step.rate,
                            .norm = per_word(step.result.norm, cost.words),
                            .words = cost.words};
  reporter_.updated(state_, report, cost);
}

void Trainer::skip(const Step& step) {
  ++state_.skipped;
  ++state_.skipped_in_a_row;
  if (state_.epoch_ended == state_.update + 1) state_.epoch_ended = state_.update;
  log_warning("update {} skipped: {} (lines {})", state_.update + 1, step.fault, lines_);
}

void Trainer::roll_back(const Step& step) {
  skip(step);
  const std::string where = step.fault + " (sentences of lines " + lines_ +
                            "); lower schedule.lr, raise schedule.warmup or set optimizer.clip";
  check(state_.rollbacks < kMostRollbacks, ExitCode::diverged, "training diverged at update ",
        state_.update + 1, " after ", kMostRollbacks, " rollbacks: ", where);
  const auto good = restore_newest(files_.checkpoints(), scheduled_checkpoints(state_.update),
                                   store_, optimizer_, task_.identity);
  check(good.has_value(), ExitCode::diverged, "training diverged at update ", state_.update + 1,
        ", and there is no checkpoint to roll back to: ", where);
  ++state_.rollbacks;
  restart_from(*good, step);
}

// Sets the state to that of `good`, whose weights and moments are in place already. The position in
// the data does not go back, so that the run does not see the bad batches again.
void Trainer::restart_from(const RestoredCheckpoint& good, const Step& step) {
  parameters_changed();
  TrainState state = good.state;
  state.epoch = state_.epoch;
  state.batch = state_.batch;
  state.drawn = state_.drawn;
  state.skipped = state_.skipped;
  state.rollbacks = state_.rollbacks;
  state.rises = state_.rises;
  // The checkpoint may include skipped updates or not, because a stopped run saves it again.
  state.skipped_in_a_row = 0;
  state.epoch_ended = std::min(state_.epoch_ended, state.update);
  state.rate_factor = state_.rate_factor * kSlowerAfterRollback;
  state.parts = state_.parts;
  log_warning("{}: {}rolled back to update {}, learning rate × {}", step.fault,
              good.skipped.empty() ? "" : good.skipped + "; ", state.update, state.rate_factor);
  state_ = state;
  reporter_.began(state_);
  if (save()) files_.remove_after(state_.update);
}

// Rolls back to weights from before the loss rose. Returns false if there are none, or if earlier
// rollbacks have not helped. Then the new loss becomes the usual one.
bool Trainer::undo_rise(const Step& step) {
  const SpikeWatch watch = std::exchange(state_.watch, {});
  Step rise = step;
  rise.fault = fmt::format("loss {:.3f} is too high: {} updates above {:.3f}, the mean is {:.3f}",
                           loss_per_word(step), watch.high, watch.limit(), watch.mean);
  // The update before the first high loss looked good, but its weights were already bad.
  std::string why_not;
  const auto good = restore_before_rise(state_.update - watch.high, &why_not);
  if (!good) {
    log_warning("{}; {}, training continues", rise.fault, why_not);
    return false;
  }
  skip(rise);
  ++state_.rises;
  restart_from(*good, rise);
  return true;
}

// Changes the weights only if it returns a checkpoint.
std::optional<RestoredCheckpoint> Trainer::restore_before_rise(int64_t latest,
                                                               std::string* why_not) {
  if (state_.rises >= kMostRises) {
    *why_not = fmt::format("{} rollbacks have not helped", kMostRises);
    return {};
  }
  *why_not = "there is no checkpoint from before the rise";
  try {
    return restore_newest(files_.checkpoints(), scheduled_checkpoints(latest), store_, optimizer_,
                          task_.identity);
  } catch (const Error& error) {
    if (error.code() != ExitCode::model) throw;
    *why_not = "the checkpoints from before the rise are damaged";
    return {};
  }
}

void Trainer::finish() {
  if (state_.finished) {
    log_info("training has already finished at update {}; nothing is left to do",
             with_commas(state_.update));
    return;
  }
  state_.finished = validator_.finish(state_);
  if (!state_.finished && save_tried_ == state_.update) return;
  state_.asked = !state_.finished;
  save();
}

}  // namespace fovea
