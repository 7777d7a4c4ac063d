#include "learning/learner.h"

#include <algorithm>
#include <ctime>
#include <numeric>

#include "base/random.h"
#include "decode/search.h"
#include "models/explainable.h"
#include "train/gradient.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace fovea::learning {
namespace {

constexpr int32_t kFirstLetter = 4;   // after padding, start, end and <unk>, which is never output
constexpr uint64_t kFresh = 1000003;  // the seed of strings that are not used for learning

TokenBatch tokens(const PackedSentences& p) { return {p.ids, p.offsets}; }

// Whether greedy search outputs each string without an error.
std::vector<bool> answers(const Model& model, const PairBatch& test) {
  std::vector<int64_t> numbers(static_cast<size_t>(test.source.sentences()));
  std::iota(numbers.begin(), numbers.end(), 0);
  SearchOptions options;
  options.beam = 1;
  const Model* const models[] = {&model};
  const auto found = search(models, tokens(test.source), numbers, options);
  std::vector<bool> right;
  for (size_t i = 0; i < found.size(); ++i)
    right.push_back(
        std::ranges::equal(found[i][0].words, test.target_out[static_cast<int64_t>(i)]));
  return right;
}

double share(const std::vector<bool>& of) {
  return static_cast<double>(std::ranges::count(of, true)) /
         static_cast<double>(std::max<size_t>(of.size(), 1));
}

// Whether the highest weight of each word, except the end, is at its source word.
std::vector<bool> aligned(const Model& model, const PairBatch& test, Task task) {
  std::vector<bool> on_line;
  for (const auto& maps :
       model.as<Attentive>()->attention(tokens(test.source), tokens(test.target_in))) {
    if (maps.empty()) continue;
    const AttentionMap& map = maps[0];
    for (int64_t t = 0; t + 1 < map.rows; ++t) {
      const auto row = map.weights.begin() + t * map.cols;
      const int64_t from = task == Task::copy ? t : map.cols - 2 - t;  // the last is the end
      on_line.push_back(std::max_element(row, row + map.cols) - row == from);
    }
  }
  return on_line;
}

}  // namespace

PairBatch Strings::batch(int64_t count, uint64_t seed, int64_t n) const {
  Random random(seed, static_cast<uint64_t>(n));
  PairBatch batch;
  for (int64_t i = 0; i < count; ++i) {
    std::vector<int32_t> s(static_cast<size_t>(
        shortest +
        static_cast<int64_t>(random.below(static_cast<uint64_t>(longest - shortest + 1)))));
    for (int32_t& letter : s)
      letter = kFirstLetter + static_cast<int32_t>(random.below(static_cast<uint64_t>(letters)));
    batch.source.add(s, PackedSentences::Mark::eos_after);
    if (task == Task::reverse) std::ranges::reverse(s);
    batch.target_in.add(s, PackedSentences::Mark::bos_before);
    batch.target_out.add(s, PackedSentences::Mark::eos_after);
  }
  batch.target_tokens = batch.target_out.tokens();
  return batch;
}

ModelConfig small_model(const std::string& attention, const std::string& score) {
  ModelConfig m;
  RecurrentConfig& own = m.network.emplace<RecurrentConfig>();
  m.encoder_layers = m.decoder_layers = 1;
  m.size = 64, own.encoder_size = 32, own.embedding = 32;
  m.tied = TiedEmbeddings::none;
  m.max_length = 64;
  m.dropout = 0;
  own.attention.kind = attention, own.attention.score = score;
  return m;
}

Report learn(const LearningTask& task) {
  const std::clock_t begin = std::clock();
  ModelConfig config = task.model;
  config.source_words = config.target_words = kFirstLetter + task.strings.letters;
  config.check(ExitCode::usage);
  const auto model = make_model(config, task.seed);
  model->parameters().allocate_gradients();
  Optimizer optimizer(model->parameters(), {.beta2 = 0.99, .clip = 1});
  const ScheduleOptions schedule{ScheduleKind::cosine, task.lr, 20, task.updates};

  Report report;
  double mean = 10;  // of −log p, with more weight on recent updates
  while (report.updates < task.updates && mean > task.enough) {
    const int64_t t = ++report.updates;
    const PairBatch batch = task.strings.batch(task.pairs, task.seed, t);
    model->parameters().gradients().fill(0);
    const BatchCost cost = add_gradient(*model, batch, {}, {task.seed, t});
    const double words = static_cast<double>(cost.words);
    optimizer.update({t, learning_rate(schedule, t, config.size), 1 / words});
    report.nll = cost.nll / words;
    mean = 0.9 * mean + 0.1 * report.nll;
  }

  const PairBatch fresh = task.strings.batch(300, kFresh, 0);
  Strings only_long = task.strings;
  only_long.shortest = only_long.longest;
  report.right = share(answers(*model, fresh));
  report.longest = share(answers(*model, only_long.batch(100, kFresh, 1)));
  report.on_line = share(aligned(*model, fresh, task.strings.task));
  report.seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  return report;
}

}  // namespace fovea::learning
