#include "train/update_executor.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/log.h"
#include "train/split_batch.h"
#include "train/within_memory.h"

namespace fovea {
namespace {

constexpr int64_t kMostReleases = 8;
constexpr uint64_t kPartSeeds = 0x9E3779B97F4A7C15u;  // between dropout seeds of successive parts

}  // namespace

UpdateExecutor::UpdateExecutor(const TrainedWeights& weights, Optimizer& optimizer,
                               const Corpus& text, const TrainOptions& options,
                               DisturbUpdate disturb)
    : weights_(weights), store_(weights_.store()), optimizer_(optimizer),
      steps_(weights_, optimizer, options.train.loss()), text_(text), options_(options),
      disturb_(std::move(disturb)) {}

StepGraphs::StepResult UpdateExecutor::update(const std::vector<PairBatch>& batches, double rate,
                                              TrainState& state) {
  const auto attempt = [&] {
    const bool whole = batches.size() == 1 && state.parts == 1 && !disturb_;
    if (!whole) return update_in_parts(batches, rate, state);
    const DropoutKey key{options_.train.seed, state.drawn};
    return steps_.update(batches[0], key, state.update + 1, rate);
  };
  return within_memory(attempt, [&](const char* why, int64_t tries) {
    return reduce_memory(batches, state, why, tries);
  });
}

StepGraphs::StepResult UpdateExecutor::update_in_parts(const std::vector<PairBatch>& batches,
                                                       double rate, const TrainState& state) {
  StepGraphs::StepResult result{{}, std::nan("")};
  store_.gradients().fill(0);
  int64_t drawn = state.drawn;
  for (const PairBatch& batch : batches) {
    DropoutKey key{options_.train.seed, drawn++};
    const auto add = [&](const PairBatch& part) {
      result.cost += steps_.add_gradient(part, key);
      key.seed += kPartSeeds;
    };
    if (state.parts == 1) {
      add(batch);
    } else {
      std::ranges::for_each(parts_of(batch, text_, part_tokens(state)), add);
    }
  }
  if (disturb_) disturb_(drawn, store_);
  const double scale = 1 / static_cast<double>(result.cost.words);
  if (std::isfinite(result.cost.loss))
    result.norm = optimizer_.update({state.update + 1, rate, scale});
  weights_.changed();
  return result;
}

// Prepares the next attempt, which needs less memory. Returns false if the parts are already single
// pairs.
bool UpdateExecutor::reduce_memory(const std::vector<PairBatch>& batches, TrainState& state,
                                   const char* why, int64_t tries) {
  if (tries == 0 && releases_ < kMostReleases) {
    ++releases_;
    steps_.release();
    log_warning("{}; releasing unused memory and trying again", why);
    return true;
  }
  if (steps_.disable_graphs()) {
    log_warning("{}; disabling CUDA graphs to save memory", why);
    return true;
  }
  const int64_t before = part_tokens(state);
  const bool single = std::ranges::all_of(batches, [&](const PairBatch& batch) {
    return parts_of(batch, text_, before).size() == batch.members.size();
  });
  if (single || before < 2) return false;
  state.parts *= 2;
  log_warning("batch of {} tokens: {}; continuing with parts of {}", with_commas(before), why,
              with_commas(part_tokens(state)));
  return true;
}

std::string find_fault(const StepGraphs::StepResult& result, const ParameterStore& store) {
  if (std::isfinite(result.norm) && std::isfinite(result.cost.loss)) return {};
  const char* const what = " is not finite";
  if (const auto* p = first_not_finite(store, store.values())) return "weight " + p->name + what;
  if (const auto* p = first_not_finite(store, store.gradients()))
    return "gradient of " + p->name + what;
  return std::string("loss") + what;
}

}  // namespace fovea
