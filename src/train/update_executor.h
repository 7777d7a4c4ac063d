#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "text/corpus.h"
#include "train/step_graphs.h"
#include "train/train_options.h"
#include "train/train_state.h"

namespace fovea {

// For tests: a function that may change gradients and weights before an update. `drawn` is the
// number of batches taken so far.
using DisturbUpdate = std::function<void(int64_t drawn, ParameterStore& store)>;

// Makes the updates of a run with the memory that is available. If memory runs out, it releases
// unused memory, then disables CUDA graphs, then splits the batches into smaller and smaller parts.
class UpdateExecutor {
 public:
  // All references outlive the UpdateExecutor.
  UpdateExecutor(const TrainedWeights& weights, Optimizer& optimizer, const Corpus& text,
                 const TrainOptions& options, DisturbUpdate disturb = nullptr);

  // Makes update state.update + 1 with the mean gradient of the batches, unless it has a fault (see
  // find_fault). Increases state.parts if the batches need too much memory. Throws ExitCode::memory
  // if even parts of single pairs need too much.
  StepGraphs::StepResult update(const std::vector<PairBatch>& batches, double rate,
                                TrainState& state);

  // Returns the maximum number of tokens in a part of a batch.
  int64_t part_tokens(const TrainState& state) const { return options_.batch.tokens / state.parts; }

  // Releases the memory of the graphs for other computations, and captures no further graph.
  void disable_graphs() { steps_.disable_graphs(); }

 private:
  StepGraphs::StepResult update_in_parts(const std::vector<PairBatch>& batches, double rate,
                                         const TrainState& state);
  bool reduce_memory(const std::vector<PairBatch>& batches, TrainState& state, const char* why,
                     int64_t tries);

  TrainedWeights weights_;
  ParameterStore& store_;
  Optimizer& optimizer_;
  StepGraphs steps_;
  const Corpus& text_;
  const TrainOptions& options_;
  DisturbUpdate disturb_;
  int64_t releases_ = 0;  // number of times that unused memory was released
};

// Returns a description of what is not finite after an update: the loss, the gradient or a weight.
// Returns "" if all are finite.
std::string find_fault(const StepGraphs::StepResult& result, const ParameterStore& store);

}  // namespace fovea
