#include "train/trainer.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/signals.h"
#include "ops/matmul.h"
#include "train/recovery.h"
#include "train/within_memory.h"

namespace fovea {

Trainer::Trainer(TrainTask task, Observers observers)
    : task_(std::move(task)), options_(task_.options), store_(task_.weights.store()),
      optimizer_(store_, options_.optimizer),
      executor_(task_.weights, optimizer_, task_.text, options_, task_.disturb),
      reporter_(std::move(observers), options_.train.log_every), files_(task_),
      checkpoints_(task_, optimizer_, files_),
      validator_(task_, optimizer_, executor_, files_, reporter_) {}

RunOutcome Trainer::run() {
  const PrecisionScope precision(options_.train.precision);
  begin();
  while (!stop_requested()) {
    if (validation_due()) {
      validate();
    } else if (checkpoints_.due(state_)) {
      save();
      if (!state_.asked) task_.save_requested();  // clears a request, which this save fulfils
    } else if (!at_the_end(options_, state_)) {
      make_update();
    } else {
      return finish();
    }
  }
  return stop();
}

void Trainer::begin() {
  const auto now = RunReporter::Clock::now();
  files_.prepare();
  const std::string origin = checkpoints_.resume(state_);
  stream_ =
      std::make_unique<BatchStream>(task_.text, options_.batch, state_.epoch, state_.batch, origin);
  optimizer_.freeze(task_.frozen);
  reporter_.began(state_);
  reporter_.exclude_time_since(now);
}

void Trainer::make_update() {
  const Step step = compute();
  const BatchCost& cost = step.result.cost;
  if (!step.fault.empty()) {
    if (skip_update({step.fault, lines_}, checkpoints_, state_)) restart();
  } else if (undo_rise(cost.loss / static_cast<double>(cost.words), lines_, checkpoints_, state_)) {
    restart();
  } else {
    ++state_.update;
    state_.finished = false;
    state_.skipped_in_a_row = 0;
    reporter_.updated(state_, step.result, step.rate, updates_in_all());
  }
}

// Updates the weights with the gradient of the next batches, unless the loss or the gradient has a
// fault.
Trainer::Step Trainer::compute() {
  const int64_t t = state_.update + 1, epoch = stream_->epoch();
  const std::vector<PairBatch> batches = stream_->take(options_.train.accumulate);
  lines_ = first_lines(batches);
  Step step;
  step.rate = state_.rate_factor * learning_rate(options_.schedule, t, options_.model.size);
  step.result = executor_.update(batches, step.rate, state_);
  step.fault = find_fault(step.result, store_);
  state_.drawn += options_.train.accumulate;
  state_.epoch = stream_->epoch();
  state_.batch = stream_->batch();
  if (state_.epoch != epoch) state_.epoch_ended = t;
  return step;
}

// Returns the update at which train.updates or train.epochs end the run, or 0 if neither of them is
// set. For epochs it is an estimate, because the number of batches per epoch varies slightly.
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
  return due || at_the_end(options_, state_);
}

void Trainer::validate() {
  const auto begin = RunReporter::Clock::now();
  const bool done = within_memory([&] { return validator_.validate(state_); },
                                  [&](const char*, int64_t) {
                                    save();  // saves before the error ends the run
                                    return false;
                                  });
  if (!done) return;  // the resumed run validates again
  checkpoints_.forget_save();
  reporter_.exclude_time_since(begin);
}

// Saves the state. If its weights are not finite, rolls back instead. Returns whether the state is
// on the disk.
bool Trainer::save() {
  if (const auto* p = first_not_finite(store_, store_.values())) {
    roll_back({"weight " + p->name + " is not finite", lines_}, checkpoints_, state_);
    restart();
    return false;
  }
  reporter_.saving();
  return checkpoints_.save(state_);
}

// Continues training from the state that a rollback restored.
void Trainer::restart() {
  reporter_.began(state_);
  if (save()) files_.remove_after(state_.update);
}

RunOutcome Trainer::stop() {
  checkpoints_.plan_unscheduled(state_);
  save();
  return RunOutcome::interrupted;
}

RunOutcome Trainer::finish() {
  if (state_.finished) {
    log_info("training has already finished at update {}; nothing is left to do",
             with_commas(state_.update));
    return RunOutcome::finished;
  }
  state_.finished = validator_.finish(state_);
  if (state_.finished || !checkpoints_.tried(state_)) {
    state_.asked = !state_.finished;
    save();
  }
  return stop_requested() && !state_.finished ? RunOutcome::interrupted : RunOutcome::finished;
}

}  // namespace fovea
