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
#include "train/checkpoint.h"
#include "train/gradient.h"
#include "train/observer.h"
#include "train/optimizer.h"
#include "train/options.h"
#include "train/step_graphs.h"
#include "train/stream.h"
#include "train/validation.h"

namespace fovea {

// What a run works on. All references must outlive the Trainer.
struct TrainTask {
  const TrainOptions& options;
  Model& model;  // with gradients allocated
  const Corpus& text;
  const HeldOut& valid;
  const HeldOut& test;
  std::string directory;  // exists and is locked
  Identity identity;      // what a checkpoint must have been made with
  ResumeMode resume = ResumeMode::exact;
  std::vector<StoreRange> frozen = {};  // parameters that stay as they are

  TranslateLines translate;
  std::function<void()> write_model;  // the model's weights become those of the directory
  std::function<void()> read_model;   // and back

  // Asked between two updates: a checkpoint now, please.
  std::function<bool()> save_requested = [] { return false; };
  // For tests: may change gradients and weights before an update is judged.
  std::function<void(int64_t drawn, ParameterStore& store)> disturb = nullptr;
};

enum class RunOutcome { finished, interrupted };

// Whether the updates, epochs or validations that the options allow are used up.
bool at_the_end(const TrainOptions& options, const TrainState& state);

// Trains a model: the same task leads to the same bits, however often it is interrupted between
// its first and its last update, unless memory was short.
class Trainer {
 public:
  Trainer(TrainTask task, Observers observers);

  // Resumes from the newest checkpoint of the directory and runs to the end or to a signal. Throws
  // Exit::files if the first save fails, or three in a row later; Exit::diverged if going back to
  // the last good weights did not help; Exit::data if the checkpoint is of other data.
  RunOutcome run();

  // Makes the first update of a new run in memory alone, without any file, and throws if it fails.
  // Afterwards the trainer and its model are of no use.
  void try_update();

  const TrainState& state() const { return state_; }

 private:
  struct Step {
    StepGraphs::Learnt learnt = {};
    double rate = 0;
    std::string fault;  // empty: all is well, and the weights are updated
  };

  void begin();
  void resume(const Restored& restored);
  void check_free_space() const;
  void make_update();
  Step compute();
  static double loss_per_word(const Step& step);
  StepGraphs::Learnt learn_or_take_less(const std::vector<PairBatch>& batches, double rate);
  StepGraphs::Learnt learn_from_parts(const std::vector<PairBatch>& batches, double rate);
  bool take_less_memory(const std::vector<PairBatch>& batches, const char* why, int64_t tries);
  int64_t part_tokens() const;
  std::string find_fault(const StepGraphs::Learnt& learnt) const;
  void count(const Step& step);
  void skip(const Step& step);
  void roll_back(const Step& step);
  bool undo_rise(const Step& step);
  std::optional<Restored> restore_before_rise(int64_t latest, std::string* why_not);
  void go_back(const Step& step, const Restored& good);
  std::vector<int64_t> due_checkpoints(int64_t latest) const;
  void note_passing();
  void remove_passing();
  void log_training(double rate, double norm);

  bool at_the_end() const { return fovea::at_the_end(options_, state_); }
  // The update at which train.updates or train.epochs end the run, as far as it is known: the
  // batches of epochs differ by a few. 0: neither does.
  int64_t updates_in_all() const;
  int64_t epoch_of_last_update() const;  // from 1
  bool validation_due() const;
  bool save_due();
  bool save_asked();
  void validate();
  void validate_or_save();
  std::optional<std::vector<Metric>> measured(const HeldOut& text, const ValidOptions& options);
  void judge(const std::vector<Metric>& values);
  void save();
  bool attempt(const std::function<void()>& write);
  void finish();
  void average();
  bool test();
  void tell(Metrics metrics);

  TrainTask task_;
  const TrainOptions& options_;
  ParameterStore& store_;
  Observers observers_;
  Optimizer optimizer_;
  StepGraphs steps_;
  FileSeries checkpoints_, snapshots_;
  TrainState state_;
  std::unique_ptr<BatchStream> stream_;
  std::vector<int64_t> lines_;  // where the sentences of the current update came from
  static constexpr int64_t kNone = -1;
  int64_t save_tried_ = kNone, failed_saves_ = 0, logged_save_ = kNone;
  bool ever_saved_ = false;    // the directory holds a checkpoint of this run
  std::set<int64_t> passing_;  // checkpoints to remove after the next: see note_passing()
  int64_t releases_ = 0;       // of memory that did not suffice
  int64_t valid_tokens_ =
      std::numeric_limits<int64_t>::max();  // of a batch that memory suffices for
  std::chrono::steady_clock::time_point logged_;
};

}  // namespace fovea
