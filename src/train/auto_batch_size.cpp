#include "train/auto_batch_size.h"

#include <algorithm>
#include <new>
#include <set>

#include "base/log.h"
#include "ops/matmul.h"
#include "tensor/memory.h"
#include "tensor/workspace.h"
#include "train/numbered_files.h"
#include "train/optimizer.h"
#include "train/step_graphs.h"

namespace fovea {
namespace {

constexpr int64_t kUnit = 64, kFirst = 256;  // tokens: unit of sizes; first size
constexpr int64_t kSteps = 16;       // the search ends at an interval of 1/16 of its upper end
constexpr int64_t kFewBatches = 32;  // with fewer batches per epoch, a warning appears
constexpr double kGibibyte = 1 << 30;

int64_t tokens_of(const Corpus& text) {  // both sides, with </s>
  return std::max(text.source_tokens(), text.target_tokens()) + text.size();
}

// Returns the indices of the batches that may need the most memory: those with the most tokens,
// with the most words to predict, with the longest sentences, and with the most tokens after
// padding to the longest sentence.
std::set<int64_t> hardest(const BatchPlan& plan, const Corpus& text) {
  int64_t most[4] = {-1, -1, -1, -1}, at[4] = {0, 0, 0, 0};
  for (int64_t i = 0; i < plan.size(); ++i) {
    int64_t found[4] = {0, 0, 0, 0};
    for (const int64_t pair : plan.members(i)) {
      const int64_t source = text.source_length(pair), target = text.target_length(pair);
      found[0] += source + target + 2;
      found[1] += target + 1;
      found[2] = std::max(found[2], source + target);
    }
    found[3] = found[2] * std::ssize(plan.members(i));
    for (int k = 0; k < 4; ++k)
      if (found[k] > most[k]) most[k] = found[k], at[k] = i;
  }
  return {std::begin(at), std::end(at)};
}

// Tests whether batches of a given size fit into memory, by real updates of a temporary model.
class MemoryTrial {
 public:
  MemoryTrial(const TrainOptions& options, const Corpus& text, Device device)
      : options_(options), text_(text), device_(device),
        model_(make_model(options.model, options.train.seed, ElementType::f32, device)) {
    model_->parameters().allocate_gradients();
    optimizer_ = std::make_unique<Optimizer>(model_->parameters(), options.optimizer);
    steps_ = std::make_unique<StepGraphs>(*model_, *optimizer_, options.train.loss());
    steps_->disable_capture();  // training itself captures graphs only if memory is left
  }

  bool fits(int64_t tokens) {
    const PrecisionScope precision(options_.train.precision);
    BatchOptions batch = options_.batch;
    batch.tokens = tokens;
    const BatchPlan plan(text_, batch, 0);
    release_memory(device_);  // frees the buffers of the sizes that were tried before
    try {
      for (const int64_t i : hardest(plan, text_)) update(plan.batch(i));
      return true;
    } catch (const Error& error) {
      if (error.code() != ExitCode::memory) throw;
      why_not_ = error.what();
    } catch (const std::bad_alloc&) {
      why_not_ = "out of memory";
    }
    return false;
  }
  const std::string& why_not() const { return why_not_; }

 private:
  void update(const PairBatch& batch) {
    ++step_;
    steps_->update(batch, {1, step_}, step_, 1e-9);
  }

  const TrainOptions& options_;
  const Corpus& text_;
  Device device_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
  std::unique_ptr<StepGraphs> steps_;
  int64_t step_ = 0;
  std::string why_not_;
};

int64_t in_units(int64_t tokens) { return std::max(kUnit, tokens / kUnit * kUnit); }

// Returns the batch size in tokens. Doubles it until a batch does not fit or the whole text (`all`
// tokens) is one batch, then bisects.
int64_t search(MemoryTrial& trial, int64_t all) {
  int64_t fits = 0, too_many = 0;
  for (int64_t next = kFirst; too_many == 0 && fits < all; next *= 2)
    (trial.fits(next) ? fits : too_many) = next;
  if (too_many == 0) return in_units(all + kUnit - 1);
  while (too_many - fits > std::max(kUnit, too_many / kSteps)) {
    const int64_t middle = in_units((fits + too_many) / 2);
    (trial.fits(middle) ? fits : too_many) = middle;
  }
  check(fits > 0, ExitCode::memory, "batch.tokens: auto: even batches of ", too_many,
        " tokens do not fit: ", trial.why_not());
  return in_units(fits - fits / kSteps);  // other batches of this size may need more
}

}  // namespace

int64_t token_budget(const TrainOptions& options, const Corpus& text, Device device) {
  const size_t most = memory_at_most(device);
  check(most > 0, ExitCode::usage,
        "batch.tokens: auto needs a memory limit, and none is known; set one with `workspace` GiB");
  limit_memory(device, most);
  log_info("batch.tokens: auto: trying larger batches until memory is full");
  const auto tokens = [&] {
    MemoryTrial trial(options, text, device);
    return search(trial, tokens_of(text));
  }();
  release_memory(device);
  log_info("batch.tokens: auto: {} tokens fit into {:.1f} GiB", with_commas(tokens),
           static_cast<double>(memory_at_most(device)) / kGibibyte);
  if (const int64_t batches = std::max<int64_t>(1, tokens_of(text) / tokens); batches < kFewBatches)
    log_warning("batches per epoch: {}; for more updates per epoch set batch.tokens to less",
                batches);
  return tokens;
}

int64_t batch_tokens(const TrainOptions& options, const Corpus& text, const std::string& directory,
                     Device device) {
  if (FileSeries(directory + "/checkpoints", "checkpoint").numbers().empty())
    return token_budget(options, text, device);
  TrainOptions earlier;
  Settings settings(earlier);
  settings.read_file(directory + "/recipe.yml", ExitCode::data);
  return earlier.batch.tokens;
}

std::string with_batch_tokens(const std::string& text, int64_t tokens) {
  TrainOptions options;
  Settings settings(options);
  settings.read_text(text, "recipe", ExitCode::unexpected);
  options.batch.tokens = tokens;
  return settings.dump();
}

}  // namespace fovea
