#include "train/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/signals.h"
#include "ops/matmul.h"
#include "train/split_batch.h"

namespace fovea {
namespace {

constexpr int64_t kSkipsBeforeRollback = 10, kMostRollbacks = 3, kMostRises = 3, kMostReleases = 8;
constexpr double kSlowerAfterRollback = 0.5;
constexpr uint64_t kPartSeeds = 0x9E3779B97F4A7C15u;  // difference of the seeds of two parts

double per_word(double sum, int64_t words) { return sum / static_cast<double>(words); }

std::string list_lines(const std::vector<int64_t>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < 10; ++i)
    text += (i ? ", " : "") + std::to_string(lines[i]);
  return lines.size() > 10 ? text + ", …" : text;
}

}  // namespace

bool at_the_end(const TrainOptions& options, const TrainState& state) {
  const LoopOptions& loop = options.train;
  return (loop.updates > 0 && state.update >= loop.updates) ||
         (loop.epochs > 0 && state.epoch >= loop.epochs) ||
         (options.valid.patience > 0 && state.since_best >= options.valid.patience);
}

Trainer::Trainer(TrainTask task, Observers observers)
    : task_(std::move(task)), options_(task_.options), store_(task_.model.parameters()),
      observers_(std::move(observers)), optimizer_(store_, options_.optimizer),
      steps_(task_.model, optimizer_, options_.train.loss()),
      checkpoints_(task_.directory + "/checkpoints", "checkpoint"),
      snapshots_(task_.directory + "/snapshots", "snapshot") {}

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
      validate_or_save();
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

// If there is not enough memory for validation, saves the weights before it throws.
void Trainer::validate_or_save() {
  try {
    validate();
  } catch (const Error& error) {
    if (error.code() == ExitCode::memory) save();
    throw;
  } catch (const std::bad_alloc&) {
    save();
    throw;
  }
}

void Trainer::begin() {
  make_directory(checkpoints_.directory());
  make_directory(snapshots_.directory());
  for (const auto& path : {task_.directory, checkpoints_.directory(), snapshots_.directory()})
    remove_temporaries(path);
  const std::vector<int64_t> updates = checkpoints_.numbers();
  const auto restored =
      restore_newest(checkpoints_, updates, store_, optimizer_, task_.identity, task_.resume);
  if (restored) resume(*restored);
  if (!restored) check_free_space();
  stream_ = std::make_unique<BatchStream>(task_.text, options_.batch, state_.epoch, state_.batch,
                                          restored ? restored->path : "");
  find_expendable();
  optimizer_.freeze(task_.frozen);
  for (auto& observer : observers_) observer->began(state_);
  logged_ = std::chrono::steady_clock::now();
}

void Trainer::try_update() {
  const PrecisionScope precision(options_.train.precision);
  optimizer_.freeze(task_.frozen);
  stream_ = std::make_unique<BatchStream>(task_.text, options_.batch, 0, 0);
  const Step step = compute();
  check(step.fault.empty(), ExitCode::diverged, "the first update failed: ", step.fault,
        " (sentences of lines ", list_lines(lines_), ")");
}

int64_t Trainer::updates_in_all() const {
  const LoopOptions& loop = options_.train;
  if (loop.epochs == 0) return loop.updates;
  const int64_t batches =
      std::max<int64_t>(0, (loop.epochs - state_.epoch) * stream_->batches() - state_.batch);
  const int64_t all = state_.update + (batches + loop.accumulate - 1) / loop.accumulate;
  return loop.updates > 0 ? std::min(all, loop.updates) : all;
}

int64_t Trainer::epoch_of_last_update() const {
  const bool ended = state_.update > 0 && state_.epoch_ended == state_.update;
  return ended ? state_.epoch : state_.epoch + 1;
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
  Step step;
  lines_.clear();
  const int64_t epoch = stream_->epoch();
  std::vector<PairBatch> batches;
  for (int64_t k = 0; k < options_.train.accumulate; ++k) {
    batches.push_back(stream_->next());
    const std::vector<int64_t>& lines = batches.back().lines;
    lines_.insert(lines_.end(), lines.begin(), lines.end());
  }
  const int64_t t = state_.update + 1;
  step.rate = state_.rate_factor * learning_rate(options_.schedule, t, options_.model.size);
  step.result = update_within_memory(batches, step.rate);
  state_.drawn += options_.train.accumulate;
  state_.epoch = stream_->epoch();
  state_.batch = stream_->batch();
  if (state_.epoch != epoch) state_.epoch_ended = t;
  step.fault = find_fault(step.result);
  return step;
}

int64_t Trainer::part_tokens() const { return options_.batch.tokens / state_.parts; }

// Makes one update. If memory does not suffice, tries again: first after releasing unused memory,
// then without graphs, then in smaller and smaller parts.
StepGraphs::StepResult Trainer::update_within_memory(const std::vector<PairBatch>& batches,
                                                     double rate) {
  for (int64_t tries = 0;; ++tries) {
    try {
      const bool whole = batches.size() == 1 && state_.parts == 1 && !task_.disturb;
      if (!whole) return update_in_parts(batches, rate);
      const DropoutKey key{options_.train.seed, state_.drawn};
      return steps_.update(batches[0], key, state_.update + 1, rate);
    } catch (const Error& error) {
      if (error.code() != ExitCode::memory || !reduce_memory(batches, error.what(), tries)) throw;
    } catch (const std::bad_alloc&) {
      if (!reduce_memory(batches, "out of memory", tries)) throw;
    }
  }
}

StepGraphs::StepResult Trainer::update_in_parts(const std::vector<PairBatch>& batches,
                                                double rate) {
  StepGraphs::StepResult result{{}, std::nan("")};
  store_.gradients().fill(0);
  for (size_t k = 0; k < batches.size(); ++k) {
    DropoutKey key{options_.train.seed, state_.drawn + static_cast<int64_t>(k)};
    const auto add = [&](const PairBatch& batch) {
      result.cost += steps_.add_gradient(batch, key);
      key.seed += kPartSeeds;
    };
    if (state_.parts == 1) {
      add(batches[k]);
    } else {
      std::ranges::for_each(parts_of(batches[k], task_.text, part_tokens()), add);
    }
  }
  if (task_.disturb) task_.disturb(state_.drawn + options_.train.accumulate, store_);
  const double scale = 1 / static_cast<double>(result.cost.words);
  if (std::isfinite(result.cost.loss))
    result.norm = optimizer_.update({state_.update + 1, rate, scale});
  return result;
}

// Prepares the next try with less memory. Returns false if the parts are single pairs already.
bool Trainer::reduce_memory(const std::vector<PairBatch>& batches, const char* why, int64_t tries) {
  if (tries == 0 && releases_ < kMostReleases) {
    ++releases_;
    steps_.release();
    log_warning("{}; releasing unused memory and trying again", why);
    return true;
  }
  if (steps_.disable_graphs()) {
    log_warning("{}; disabling CUDA graphs to save memory", why);
    return true;
  }
  const int64_t before = part_tokens();
  const bool whole = std::ranges::all_of(batches, [&](const PairBatch& batch) {
    return parts_of(batch, task_.text, before).size() == batch.members.size();
  });
  if (whole || before < 2) return false;
  state_.parts *= 2;
  log_warning("batch of {} tokens: {}; continuing with parts of {}", with_commas(before), why,
              with_commas(part_tokens()));
  return true;
}

std::string Trainer::find_fault(const StepGraphs::StepResult& result) const {
  if (std::isfinite(result.norm) && std::isfinite(result.cost.loss)) return {};
  const char* const what = " is not finite";
  if (const auto* p = first_not_finite(store_, store_.values())) return "weight " + p->name + what;
  if (const auto* p = first_not_finite(store_, store_.gradients()))
    return "gradient of " + p->name + what;
  return std::string("loss") + what;
}

void Trainer::record(const Step& step) {
  const BatchCost& cost = step.result.cost;
  const int64_t t = state_.update + 1, words = cost.words;
  state_.update = t;
  state_.finished = false;
  state_.skipped_in_a_row = 0;
  state_.loss += cost.loss;
  state_.nll += cost.nll;
  state_.words += words;
  state_.guided += cost.guided;
  state_.guided_words += cost.guided_words;
  const double norm = per_word(step.result.norm, words);
  const UpdateReport report{.update = t,
                            .updates = updates_in_all(),
                            .epoch = epoch_of_last_update(),
                            .loss = per_word(cost.loss, words),
                            .nll = per_word(cost.nll, words),
                            .rate = step.rate,
                            .norm = norm,
                            .words = words};
  for (auto& observer : observers_) observer->updated(report);
  if (t % options_.train.log_every == 0) log_training(step.rate, norm);
}

void Trainer::log_training(double rate, double norm) {
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - logged_).count();
  logged_ = now;
  MetricsLine metrics{.kind = "train",
                      .values = {{"loss", per_word(state_.loss, state_.words)},
                                 {"ppl", std::exp(per_word(state_.nll, state_.words))},
                                 {"lr", rate},
                                 {"norm", norm},
                                 {"skipped", static_cast<double>(state_.skipped)}},
                      .wall = {{"words_per_s", static_cast<double>(state_.words) / seconds}}};
  if (state_.guided_words > 0)
    metrics.values.push_back({"guided", per_word(state_.guided, state_.guided_words)});
  notify(std::move(metrics));
  state_.loss = state_.nll = state_.guided = 0;
  state_.words = state_.guided_words = 0;
}

void Trainer::notify(MetricsLine metrics) {
  metrics.update = state_.update;
  metrics.epoch = epoch_of_last_update();
  metrics.wall.push_back({"time", static_cast<double>(std::time(nullptr))});
  for (auto& observer : observers_) observer->measured(metrics);
}

void Trainer::skip(const Step& step) {
  ++state_.skipped;
  ++state_.skipped_in_a_row;
  if (state_.epoch_ended == state_.update + 1) state_.epoch_ended = state_.update;
  log_warning("update {} skipped: {} (lines {})", state_.update + 1, step.fault,
              list_lines(lines_));
}

void Trainer::roll_back(const Step& step) {
  skip(step);
  const std::string where = step.fault + " (sentences of lines " + list_lines(lines_) +
                            "); lower schedule.lr, raise schedule.warmup or set optimizer.clip";
  check(state_.rollbacks < kMostRollbacks, ExitCode::diverged, "training diverged at update ",
        state_.update + 1, " after ", kMostRollbacks, " rollbacks: ", where);
  const auto good = restore_newest(checkpoints_, scheduled_checkpoints(state_.update), store_,
                                   optimizer_, task_.identity);
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
  for (auto& observer : observers_) observer->began(state_);
  save();
  if (failed_saves_ > 0) return;
  for (const FileSeries* files : {&checkpoints_, &snapshots_})
    for (const int64_t number : files->numbers())
      if (number > state_.update) files->remove(number);  // undone
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
    return restore_newest(checkpoints_, scheduled_checkpoints(latest), store_, optimizer_,
                          task_.identity);
  } catch (const Error& error) {
    if (error.code() != ExitCode::model) throw;
    *why_not = "the checkpoints from before the rise are damaged";
    return {};
  }
}

}  // namespace fovea
