#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>

#include "text/batch.h"

namespace fovea {

// The batches of epoch after epoch, made one ahead on another thread. The plan of the next epoch is
// made in the background from the middle of an epoch on.
//
// REQUIRES: the corpus is not empty and outlives the stream.
class BatchStream {
 public:
  // Throws Exit::data if the epoch has no such batch. `origin` names the file that the position
  // comes from.
  BatchStream(const Corpus& corpus, const BatchOptions& options, int64_t epoch, int64_t batch,
              const std::string& origin = "");
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  PairBatch next();

  // Where the batch that next() will give stands; both from 0.
  int64_t epoch() const { return epoch_; }
  int64_t batch() const { return batch_; }
  int64_t batches() const { return batches_; }  // of the epoch that the last batch was of

 private:
  struct Made {
    PairBatch batch;
    std::shared_ptr<const BatchPlan> plan;
  };
  using Plan = std::shared_ptr<const BatchPlan>;
  void begin();
  void plan_next_epoch();

  const Corpus& corpus_;
  BatchOptions options_;
  int64_t epoch_, batch_, batches_ = 0;
  Plan plan_;                           // of epoch_, absent at its beginning
  std::shared_future<Plan> next_plan_;  // of the epoch after epoch_, from its middle on
  std::future<Made> made_;
};

}  // namespace fovea
