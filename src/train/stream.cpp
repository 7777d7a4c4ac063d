#include "train/stream.h"

#include <system_error>

namespace fovea {

BatchStream::BatchStream(const Corpus& corpus, const BatchOptions& options, int64_t epoch,
                         int64_t batch)
    : corpus_(corpus), options_(options), epoch_(epoch), batch_(batch) {
  begin();
}

BatchStream::~BatchStream() {
  if (made_.valid()) made_.wait();
}

void BatchStream::begin() {
  const auto make = [this, plan = plan_, epoch = epoch_, batch = batch_] {
    Made made{.batch = {}, .plan = plan};
    if (!made.plan) made.plan = std::make_shared<BatchPlan>(corpus_, options_, epoch);
    made.batch = made.plan->batch(batch);
    return made;
  };
  try {
    made_ = std::async(std::launch::async, make);
  } catch (const std::system_error&) {  // no room for another thread: when it is asked for
    made_ = std::async(std::launch::deferred, make);
  }
}

PairBatch BatchStream::next() {
  Made made = made_.get();
  plan_ = std::move(made.plan);
  batches_ = plan_->size();
  if (++batch_ == batches_) {
    ++epoch_;
    batch_ = 0;
    plan_ = nullptr;
  }
  begin();
  return std::move(made.batch);
}

}  // namespace fovea
