#include "train/train_task.h"

namespace fovea {

bool at_the_end(const TrainOptions& options, const TrainState& state) {
  const LoopOptions& loop = options.train;
  return (loop.updates > 0 && state.update >= loop.updates) ||
         (loop.epochs > 0 && state.epoch >= loop.epochs) ||
         (options.valid.patience > 0 && state.since_best >= options.valid.patience);
}

}  // namespace fovea
