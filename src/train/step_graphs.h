#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "models/replayable.h"
#include "tensor/feed.h"
#include "tensor/graph.h"
#include "train/gradient.h"
#include "train/optimizer.h"

namespace fovea {

// An executor of training steps: the forward pass, the backward pass and the update. On a GPU the
// second batch with the same sizes is captured as a graph (Note [Replays]), and later batches with
// these sizes replay it. All other batches launch their kernels one by one, with the same bits. A
// model whose step depends on values of the host, such as sampled attention, aborts the first
// capture. Capturing is then disabled.
//
// REQUIRES: the model, which has gradients, and its optimiser outlive this object. The precision of
// products does not change.
class StepGraphs {
 public:
  StepGraphs(Model& model, Optimizer& optimizer, const LossOptions& options);

  // The same as add_gradient() of train/gradient.h.
  BatchCost add_gradient(const PairBatch& batch, DropoutKey key);

  // Sets the gradients to those of this batch. Then makes update number `step` (from 1) with their
  // mean over the target words of the batch. If the loss or the norm is not finite, makes no update
  // and returns a norm that is not finite.
  struct StepResult {
    BatchCost cost;
    double norm = 0;
  };
  StepResult update(const PairBatch& batch, DropoutKey key, int64_t step, double lr);

  int64_t replays() const { return replays_; }  // number so far
  void disable_capture() { capturing_ = false; }
  // Releases unused memory and all graphs. Graphs are captured again when their sizes come back.
  void release();
  // Calls disable_capture() and release(). Returns false if there was no graph.
  bool disable_graphs();

 private:
  // A batch whose values are in the buffer of inputs_.
  struct StagedBatch {
    DropoutKey key;
    Tensor step;    // i32 [1]: key.drawn
    Tensor update;  // absent if only the gradient is needed
    std::unique_ptr<PreparedBatch> prepared;
  };
  // The graph of all batches with the same sizes.
  struct CachedGraph {
    int64_t used = 0;  // number of the last step with these sizes; 0: none
    Graph graph = {};
    Tensor results = {};  // the graph writes its results here
  };

  StagedBatch stage(const PairBatch& batch, DropoutKey key, const UpdateScale* update);
  StepResult run(const PairBatch& batch, DropoutKey key, const UpdateScale* update);
  StepResult run_unprepared(const PairBatch& batch, DropoutKey key, const UpdateScale* update);
  CachedGraph& cached_graph(const StagedBatch& staged);
  Tensor allocate_results(const StagedBatch& staged) const;
  void compute(const StagedBatch& staged, const Tensor& results);
  bool may_capture() const;
  void capture(const StagedBatch& staged, CachedGraph& cached);
  void remove_oldest();

  Model& model_;
  const Replayable* replayable_;  // null if the model cannot be replayed
  Optimizer& optimizer_;
  LossOptions options_;
  bool capturing_, captured_ = false;
  std::unique_ptr<BatchInputs> inputs_;  // absent if nothing is ever captured
  // By all values that determine the work of the device.
  std::map<std::vector<int64_t>, CachedGraph> cache_;
  int64_t steps_ = 0, replays_ = 0, graphs_ = 0;
};

}  // namespace fovea
