#include "train/batch_prefetch.h"

#include <system_error>

#include "base/log.h"

namespace fovea {

BatchStream::BatchStream(const Corpus& corpus, const BatchOptions& options, int64_t epoch,
                         int64_t batch, const std::string& origin)
    : corpus_(corpus), options_(options), epoch_(epoch), batch_(batch) {
  if (batch != 0) {
    plan_ = std::make_shared<BatchPlan>(corpus_, options_, epoch_);
    check(batch > 0 && batch < plan_->size(), ExitCode::data, origin, ": state.batch: found ",
          with_commas(batch), ", allowed: 0 to ", with_commas(plan_->size() - 1),
          " (the batches of epoch ", with_commas(epoch),
          "); remove the file, or start over with `restart`");
  }
  start_prefetch();
}

BatchStream::~BatchStream() {
  if (prefetched_.valid()) prefetched_.wait();
  if (next_plan_.valid()) next_plan_.wait();
}

void BatchStream::start_prefetch() {
  const auto make = [this, plan = plan_, next = next_plan_, epoch = epoch_, batch = batch_] {
    PrefetchedBatch made{.batch = {}, .plan = plan};
    if (!made.plan && next.valid()) made.plan = next.get();
    if (!made.plan) made.plan = std::make_shared<BatchPlan>(corpus_, options_, epoch);
    made.batch = made.plan->batch(batch);
    return made;
  };
  try {
    prefetched_ = std::async(std::launch::async, make);
  } catch (const std::system_error&) {  // no thread was created: next() makes the batch
    prefetched_ = std::async(std::launch::deferred, make);
  }
}

PairBatch BatchStream::next() {
  PrefetchedBatch made = prefetched_.get();
  plan_ = std::move(made.plan);
  batches_ = plan_->size();
  if (++batch_ == batches_) {
    ++epoch_;
    batch_ = 0;
    plan_ = nullptr;
    start_prefetch();
    next_plan_ = {};
  } else {
    start_prefetch();
    if (2 * batch_ >= batches_ && !next_plan_.valid()) plan_next_epoch();
  }
  return std::move(made.batch);
}

std::vector<PairBatch> BatchStream::take(int64_t count) {
  std::vector<PairBatch> batches;
  for (int64_t k = 0; k < count; ++k) batches.push_back(next());
  return batches;
}

void BatchStream::plan_next_epoch() {
  try {
    next_plan_ = std::async(std::launch::async, [this, epoch = epoch_ + 1]() -> Plan {
      return std::make_shared<BatchPlan>(corpus_, options_, epoch);
    });
  } catch (const std::system_error&) {  // no thread was created: start_prefetch() makes the plan
  }
}

std::string first_lines(const std::vector<PairBatch>& batches) {
  constexpr int64_t kMost = 10;
  std::string text;
  int64_t listed = 0;
  for (const PairBatch& batch : batches)
    for (const int64_t line : batch.lines) {
      if (listed == kMost) return text + ", …";
      text += (listed++ ? ", " : "") + std::to_string(line);
    }
  return text;
}

}  // namespace fovea
