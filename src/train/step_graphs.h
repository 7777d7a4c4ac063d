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

// An executor of training steps: the forward pass, the backward pass and the update. On a GPU it
// captures the step of the second batch with the same sizes as a graph (Note [Replays]). Later
// batches with these sizes replay the graph. For all other batches it launches the kernels one by
// one, with the same bits. If the step of a model reads values on the host, as sampled attention
// does, the first capture fails, and capturing is then disabled.
//
// REQUIRES: the weights, which have gradients, and their optimiser outlive this object. The
// precision of products does not change.
class StepGraphs {
 public:
  // The optimiser updates weights.store().
  StepGraphs(const TrainedWeights& weights, Optimizer& optimizer, const LossOptions& options);

  // Has the same result as add_gradient() of train/gradient.h.
  BatchCost add_gradient(const PairBatch& batch, DropoutKey key);

  // Sets the gradients to those of this batch. Then makes update number `step` (from 1) with their
  // mean over the target words of the batch. If the loss or the norm is not finite, makes no update
  // and returns a norm that is not finite.
  struct StepResult {
    BatchCost cost;
    double norm = 0;
  };
  StepResult update(const PairBatch& batch, DropoutKey key, int64_t step, double lr);

  int64_t replays() const { return replays_; }  // number of replays so far
  void disable_capture() { capturing_ = false; }
  // Releases unused memory and all graphs. A graph is captured again when its sizes occur again.
  void release();
  // Calls disable_capture() and release(). Returns false if there was no graph.
  bool disable_graphs();

 private:
  // A batch on the device, ready for compute(). Its values are in the buffer of inputs_.
  struct StagedBatch {
    DropoutKey key;
    Tensor step;    // i32 [1]: key.drawn, for dropout
    Tensor update;  // parameters of the update; absent: gradient only
    std::unique_ptr<PreparedBatch> prepared;
  };
  // The graph of all batches with the same sizes.
  struct CachedGraph {
    int64_t used = 0;  // index of the last step with these sizes, from 1; 0: none
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

  TrainedWeights weights_;
  Model& model_;
  const Replayable* replayable_;  // null if the model cannot be replayed
  Optimizer& optimizer_;
  LossOptions options_;
  bool capturing_, captured_ = false;
  std::unique_ptr<BatchInputs> inputs_;  // absent if the model is never captured
  // The key has all sizes that determine which kernels a step launches.
  std::map<std::vector<int64_t>, CachedGraph> cache_;
  int64_t steps_ = 0, replays_ = 0, graphs_ = 0;
};

}  // namespace fovea
