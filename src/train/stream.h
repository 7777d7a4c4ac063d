#pragma once

#include <cstdint>
#include <future>
#include <memory>

#include "text/batch.h"

namespace fovea {

// The batches of epoch after epoch, made one ahead on another thread.
//
// REQUIRES: the corpus is not empty and outlives the stream.
class BatchStream {
 public:
  BatchStream(const Corpus& corpus, const BatchOptions& options, int64_t epoch, int64_t batch);
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
  void begin();

  const Corpus& corpus_;
  BatchOptions options_;
  int64_t epoch_, batch_, batches_ = 0;
  std::shared_ptr<const BatchPlan> plan_;  // of epoch_, absent at its beginning
  std::future<Made> made_;
};

}  // namespace fovea
