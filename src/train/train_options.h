#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "eval/metric_tokenizers.h"
#include "models/low_rank_adapter.h"
#include "models/model_config.h"
#include "ops/matmul.h"
#include "text/batch.h"
#include "text/corpus.h"
#include "text/labelled_text.h"
#include "text/vocabulary_build.h"
#include "train/gradient.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace fovea {

// The task of a model: translate sentences, find the label of a text, or answer a question about a
// document with one word.
enum class TaskKind { translate, classify, read };
enum class ExampleFiling { automatic, label_first, tabs, babi };  // automatic: depends on the task

// Parallel text: line k of the source files belongs to line k of the target files. Relative paths
// start at `root`, or at the current folder if it is empty.
struct DataOptions {
  std::string root;                    // folder of relative paths; start_at() resolves it
  std::vector<std::string> looked_in;  // folders in which start_at looked for the text
  std::vector<std::string> train_source, train_target;
  std::vector<std::string> valid_source, valid_target;
  std::vector<std::string> test_source, test_target;  // measured once, at the end
  std::vector<std::string> weights;     // numbers, one for each file of train_source; empty: 1
  std::vector<std::string> alignments;  // word links of the training text, which guide attention
  CorpusOptions corpus;

  TaskKind task = TaskKind::translate;          // key `task` of the recipe, not of `data`
  std::vector<std::string> train, valid, test;  // examples, for classify and read
  ExampleFiling format = ExampleFiling::automatic;
  int64_t hold_out = 0;  // n: every n-th training example (babi: story) is for validation; 0: none

  void describe(Settings& s);
  bool labelled() const { return task != TaskKind::translate; }
  ExampleFiles examples(const std::vector<std::string>& paths, StorySelection share = {}) const;
  // Resolves `root`. `folder` is the argument of --data. If --data is given, a relative root is a
  // folder below it, and --data replaces an absolute root. Otherwise a relative root is below
  // $FOVEA_DATA, the current folder or the folder of the recipe: below the first of these folders
  // in which the first training file exists.
  void start_at(const std::string& folder, const std::string& recipe);
  std::vector<std::string> under_root(const std::vector<std::string>& paths) const;
  void parse_weights(ExitCode code);  // sets corpus.weights; throws Error(code)
};

enum class VocabularyKind { unigram, bpe, words, characters, pieces, tokens };

// The files of existing vocabularies, or the settings for making vocabularies from the training
// text.
struct VocabularyOptions {
  std::string source, target;  // files; empty: training makes them from its text
  VocabularyKind kind = VocabularyKind::unigram;
  bool joint = true;    // one vocabulary for both languages
  int64_t size = 8000;  // including the four special pieces; 0: all pieces (not for unigram, bpe)
  int64_t min_count = 1;
  double character_coverage = 1;
  bool byte_fallback = true;          // only for SentencePiece
  std::vector<std::string> add = {};  // further pieces

  void describe(Settings& s);
};

// Initial embeddings from files of word vectors.
struct VectorOptions {
  std::string source, target;  // files; empty: none
  bool frozen = false;         // training does not change the rows that got a vector
  bool rescale = true;         // scales vectors to the mean square of the replaced values

  void describe(Settings& s);
  bool given() const { return !source.empty() || !target.empty(); }
};

// Training of an adapter instead of the model: see LowRankAdapter.
struct LoraOptions {
  int64_t rank = 0;  // 0: trains the model
  double alpha = 16;
  double dropout = 0;                     // of A
  std::vector<std::string> targets = {};  // patterns; empty: attention and feed-forward layers

  void describe(Settings& s);
  AdapterSize size() const { return {rank, alpha}; }
};

// The options of the training loop.
struct LoopOptions {
  int64_t updates = 20'000, epochs = 0;  // maximum numbers; 0: no limit
  std::string from = {};                 // a model directory with the initial weights
  std::vector<std::string> freeze = {};  // patterns of parameters that training does not change
  LoraOptions lora = {};
  int64_t accumulate = 1;  // batches per update
  double label_smoothing = 0.1;
  int64_t average = 0;  // N: the mean weights of the last N validations may become the model
  int64_t log_every = 100;
  uint64_t seed = 1;
  Precision precision = Precision::f32;
  int64_t threads = 0;        // 0: all cores
  double guided_weight = 0;   // weight of the guided loss; 0: 0.1 with data.alignments
  int64_t guided_layer = -1;  // decoder layer whose first head is guided; −1: the last but one
  AlignmentStep guided_step = AlignmentStep::writes;

  void describe(Settings& s);
  LossOptions loss() const { return {label_smoothing, guided_weight}; }
};

// The options of validation.
struct ValidOptions {
  int64_t every = 0;  // number of updates; 0: at the end of each epoch
  // Minimum number of updates between two validations at ends of epochs. Without it, a run on a few
  // lines would spend most of its time on validating and saving. Not a recipe setting.
  int64_t apart = 100;
  std::vector<std::string> metrics = {"ppl"};  // of loss, ppl, bleu, chrf, accuracy
  std::string stop_metric = "ppl";             // decides which weights are the best
  int64_t patience = 10;  // maximum number of validations without a new best; 0: no limit
  int64_t beam = 1;
  double length_penalty = 1;
  BleuTokenizer tokenize = BleuTokenizer::automatic;
  bool lowercase = false;

  void describe(Settings& s);
  bool wants(const std::string& metric) const;  // whether validation measures it
};

// The options of checkpoints.
struct CheckpointOptions {
  int64_t every = 1000;  // updates; the run also saves after validations, at the end, on a signal
  int64_t keep = 3;

  void describe(Settings& s);
};

// All settings of a recipe.
struct TrainOptions {
  DataOptions data;
  VocabularyOptions vocabulary;
  VectorOptions vectors;
  ModelConfig model;
  BatchOptions batch;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  LoopOptions train;
  ValidOptions valid;
  CheckpointOptions checkpoint;

  void describe(Settings& s);
  // Sets the values that depend on other settings. Throws Error(code) if settings contradict each
  // other.
  void complete(ExitCode code);
  std::vector<std::string> test_metrics() const;  // metrics of the test at the end
  bool validates() const;                         // whether there is validation text

 private:
  void complete_guide(ExitCode code);
  void check_adapter(ExitCode code) const;
  void check_parallel(ExitCode code) const;
  void check_labelled(ExitCode code) const;
  void check_vocabulary(ExitCode code) const;
};

// Whether a larger value of the metric is better.
bool higher_is_better(const std::string& metric);

}  // namespace fovea
