#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "models/model.h"
#include "train/batch_prefetch.h"
#include "train/checkpoint.h"
#include "train/gradient.h"
#include "train/observer.h"
#include "train/optimizer.h"
#include "train/step_graphs.h"
#include "train/train_options.h"
#include "train/validation.h"

namespace fovea {

// The input and the callbacks of a Trainer. All references must outlive the Trainer.
struct TrainTask {
  const TrainOptions& options;
  Model& model;  // with gradients allocated
  const Corpus& text;
  const HeldOut& valid;
  const HeldOut& test;
  std::string directory;  // exists and is locked
  RunIdentity identity;   // checkpoints must have this identity
  ResumeMode resume = ResumeMode::exact;
  std::vector<StoreRange> frozen = {};  // parameters that training does not change

  TranslateLines translate;
  std::function<void()> write_model;  // writes the model's weights to the directory
  std::function<void()> read_model;   // reads the model's weights from the directory

  // Called between two updates. True requests a checkpoint now; the call clears the request.
  std::function<bool()> save_requested = [] { return false; };
  // For tests: may change gradients and weights before the update is checked.
  std::function<void(int64_t drawn, ParameterStore& store)> disturb = nullptr;
};

enum class RunOutcome { finished, interrupted };

// Whether the run has reached its limit of updates, epochs or validations without a new best.
bool at_the_end(const TrainOptions& options, const TrainState& state);

// The training loop with validation, checkpoints and recovery from faults. The same task gives the
// same bits, however often it is interrupted and resumed, unless memory was short.
class Trainer {
 public:
  Trainer(TrainTask task, Observers observers);

  // Resumes from the newest checkpoint of the directory and runs to the end or to a signal. Throws
  // ExitCode::files if the first save fails, or later three in a row. Throws ExitCode::diverged if
  // rollbacks did not help. Throws ExitCode::data if the checkpoint has another identity.
  RunOutcome run();

  // Makes the first update of a new run without writing any file, and throws if it fails.
  // Afterwards the trainer and its model must not be used for training.
  void try_update();

  const TrainState& state() const { return state_; }

 private:
  struct Step {
    StepGraphs::StepResult result = {};
    double rate = 0;
    std::string fault;  // empty: no fault, and the weights are updated
  };

  void begin();
  void resume(const RestoredCheckpoint& restored);
  void check_free_space() const;
  void make_update();
  Step compute();
  static double loss_per_word(const Step& step);
  StepGraphs::StepResult update_within_memory(const std::vector<PairBatch>& batches, double rate);
  StepGraphs::StepResult update_in_parts(const std::vector<PairBatch>& batches, double rate);
  bool reduce_memory(const std::vector<PairBatch>& batches, const char* why, int64_t tries);
  int64_t part_tokens() const;
  std::string find_fault(const StepGraphs::StepResult& result) const;
  void record(const Step& step);
  void skip(const Step& step);
  void roll_back(const Step& step);
  bool undo_rise(const Step& step);
  std::optional<RestoredCheckpoint> restore_before_rise(int64_t latest, std::string* why_not);
  void restart_from(const RestoredCheckpoint& good, const Step& step);
  std::vector<int64_t> scheduled_checkpoints(int64_t latest) const;
  void find_expendable();
  void remove_expendable();
  void log_training(double rate, double norm);

  bool at_the_end() const { return fovea::at_the_end(options_, state_); }
  // The update at which train.updates or train.epochs end the run. For epochs this is an estimate,
  // because the number of batches per epoch varies slightly. 0: neither of them is set.
  int64_t updates_in_all() const;
  int64_t epoch_of_last_update() const;  // from 1
  bool validation_due() const;
  bool save_due();
  bool save_asked();
  void validate();
  void validate_or_save();
  std::optional<std::vector<MetricValue>> measured(const HeldOut& text,
                                                   const ValidOptions& options);
  void keep_if_best(const std::vector<MetricValue>& values);
  void save();
  bool try_write(const std::function<void()>& write);
  void finish();
  void average();
  bool test();
  void notify(MetricsLine metrics);

  TrainTask task_;
  const TrainOptions& options_;
  ParameterStore& store_;
  Observers observers_;
  Optimizer optimizer_;
  StepGraphs steps_;
  FileSeries checkpoints_, snapshots_;
  TrainState state_;
  std::unique_ptr<BatchStream> stream_;
  std::vector<int64_t> lines_;  // line numbers of the sentences of the current update
  static constexpr int64_t kNone = -1;
  int64_t save_tried_ = kNone, failed_saves_ = 0, logged_save_ = kNone;
  bool ever_saved_ = false;       // the directory holds a checkpoint of this run
  std::set<int64_t> expendable_;  // checkpoints to remove after the next save: find_expendable()
  int64_t releases_ = 0;          // number of times that unused memory was released
  int64_t valid_tokens_ =
      std::numeric_limits<int64_t>::max();  // tokens of a validation batch that fits into memory
  std::chrono::steady_clock::time_point logged_;
};

}  // namespace fovea
