#pragma once

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "text/batch.h"

namespace fovea {

// An endless sequence of the batches of all epochs. A second thread prepares the next batch. From
// the middle of an epoch on, a third thread prepares the plan of the next epoch, which assigns
// pairs to batches.
//
// Thread safety: call the methods from one thread.
// REQUIRES: the corpus is not empty and outlives the stream.
class BatchStream {
 public:
  // Starts at `batch` of `epoch`, both from 0. Throws ExitCode::data if the epoch has no such
  // batch; the message begins with `origin`, the file that the position comes from.
  BatchStream(const Corpus& corpus, const BatchOptions& options, int64_t epoch, int64_t batch,
              const std::string& origin = "");
  ~BatchStream();
  BatchStream(const BatchStream&) = delete;
  BatchStream& operator=(const BatchStream&) = delete;

  PairBatch next();
  std::vector<PairBatch> take(int64_t count);  // the next `count` batches

  // The position of the batch that next() returns; both from 0.
  int64_t epoch() const { return epoch_; }
  int64_t batch() const { return batch_; }
  int64_t batches() const { return batches_; }  // number of batches in the epoch of the last batch

 private:
  struct PrefetchedBatch {
    PairBatch batch;
    std::shared_ptr<const BatchPlan> plan;
  };
  using Plan = std::shared_ptr<const BatchPlan>;
  void start_prefetch();
  void plan_next_epoch();

  const Corpus& corpus_;
  BatchOptions options_;
  int64_t epoch_, batch_, batches_ = 0;
  Plan plan_;                           // of epoch_; absent at the beginning of an epoch
  std::shared_future<Plan> next_plan_;  // of epoch_ + 1; valid from the middle of epoch_ on
  std::future<PrefetchedBatch> prefetched_;
};

// Returns the line numbers of the first ten sentences of the batches: "4, 17, 3, …".
std::string first_lines(const std::vector<PairBatch>& batches);

}  // namespace fovea
