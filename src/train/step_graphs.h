#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "tensor/feed.h"
#include "tensor/graph.h"
#include "train/gradient.h"
#include "train/optimizer.h"

namespace fovea {

// Step after step of training: the way forth and back through a model, and the update. On a GPU a
// batch whose sizes have come before is done by replaying a graph (Note [Replays]), captured when
// they came the second time; everything else is done kernel by kernel, with the same bits. A model
// whose step hangs on numbers that the host reads or makes, such as drawn attention, ends the first
// capture, and none follows.
//
// REQUIRES: the model, which has gradients, and its optimiser outlive this. The precision of
// products stays the same.
class StepGraphs {
 public:
  StepGraphs(Model& model, Optimizer& optimizer, const LossOptions& options);

  // What add_gradient() of train/gradient.h does.
  Cost add_gradient(const PairBatch& batch, DropoutKey key);

  // Sets the gradients to those of this batch, and makes update number `step` (from 1) with their
  // mean over its target words, unless its loss or their norm, which is not finite then, is not.
  struct Learnt {
    Cost cost;
    double norm = 0;
  };
  Learnt update(const PairBatch& batch, DropoutKey key, int64_t step, double lr);

  int64_t replays() const { return replays_; }  // so far
  void capture_no_more() { capturing_ = false; }
  // Gives back what is free, and all graphs, which are captured again when their sizes come back.
  void release();
  // Both. False where there was no graph.
  bool give_up_graphs();

 private:
  // A batch whose numbers are in the feed.
  struct Fed {
    DropoutKey key;
    Tensor step;    // i32 [1]: key.drawn
    Tensor update;  // absent where the gradient is all that is asked for
    std::unique_ptr<Prepared> lesson;
  };
  struct Known {
    int64_t used = 0;  // the step that had these sizes last
    Graph graph = {};
    Tensor results = {};  // where the graph leaves them
  };

  Fed feed(const PairBatch& batch, DropoutKey key, const Update* update);
  Learnt learn(const PairBatch& batch, DropoutKey key, const Update* update);
  Learnt learn_unprepared(const PairBatch& batch, DropoutKey key, const Update* update);
  Known& known(const Fed& fed);
  Tensor room_for_results(const Fed& fed) const;
  void work(const Fed& fed, const Tensor& results);
  bool may_capture() const;
  void capture(const Fed& fed, Known& known);
  void forget_oldest();

  Model& model_;
  Optimizer& optimizer_;
  LossOptions options_;
  bool capturing_, captured_ = false;
  std::unique_ptr<Feed> feed_;                   // absent where nothing is ever captured
  std::map<std::vector<int64_t>, Known> known_;  // by all that decides what a device has to do
  int64_t steps_ = 0, replays_ = 0, graphs_ = 0;
};

}  // namespace fovea
