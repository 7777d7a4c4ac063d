#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "eval/tokenize.h"
#include "models/config.h"
#include "ops/matmul.h"
#include "text/batch.h"
#include "text/corpus.h"
#include "text/examples.h"
#include "text/vocabulary_build.h"
#include "train/gradient.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace fovea {

// What is learnt: sentences from sentences, the label of a text, or the answer of one word to a
// question about a document.
enum class TaskKind { translate, classify, read };
enum class ExampleFiling { automatic, label_first, tabs, babi };  // automatic: by the task

// Parallel text: line k of the source files belongs to line k of the target files. Relative paths
// start at `root`, or at the current folder if it is empty.
struct DataOptions {
  std::string root;                    // see start_at
  std::vector<std::string> looked_in;  // folders in which start_at looked for the text
  std::vector<std::string> train_source, train_target;
  std::vector<std::string> valid_source, valid_target;
  std::vector<std::string> test_source, test_target;  // translated once, at the end
  std::vector<std::string> alignments;  // word links of the training text, which guide attention
  CorpusOptions corpus;

  TaskKind task = TaskKind::translate;          // of the whole recipe
  std::vector<std::string> train, valid, test;  // examples, for classify and read
  ExampleFiling format = ExampleFiling::automatic;
  int64_t hold_out = 0;  // every n-th example or story is for validation; 0: none

  void describe(Settings& s);
  bool labelled() const { return task != TaskKind::translate; }
  // What makes use of such a model: "fovea classify" and what stands behind the model, for a shell.
  // A translator is given the sentence, which must need no escapes.
  std::pair<std::string, std::string> example_of_use(const std::string& sentence) const;
  ExampleFiles examples(const std::vector<std::string>& paths, Share share = {}) const;
  // Resolves `root`. A relative root is a folder below `folder`, which --data names; an absolute
  // one is replaced by it. Without `folder` the root is below the first of $FOVEA_DATA, the current
  // folder and the recipe's own folder that has the first file of the training text.
  void start_at(const std::string& folder, const std::string& recipe);
  std::vector<std::string> under_root(const std::vector<std::string>& paths) const;
};

enum class VocabularyKind { unigram, bpe, words, characters, pieces, tokens };

// Either the files of ready-made vocabularies or how to make them from the training text.
struct VocabularyOptions {
  std::string source, target;  // files; empty: made from the training text
  VocabularyKind kind = VocabularyKind::unigram;
  bool joint = true;    // one vocabulary for both languages
  int64_t size = 8000;  // with the four specials; 0: all (not for unigram and bpe)
  int64_t min_count = 1;
  double character_coverage = 1;
  bool byte_fallback = true;  // SentencePiece alone

  void describe(Settings& s);
};

// First embeddings from files of word vectors.
struct VectorOptions {
  std::string source, target;  // files; empty: none
  bool frozen = false;         // rows that were found keep their values
  bool rescale = true;         // numbers become as large as those they replace

  void describe(Settings& s);
  bool given() const { return !source.empty() || !target.empty(); }
};

struct LoopOptions {
  int64_t updates = 20'000, epochs = 0;  // where to end; 0: no limit
  std::string from = {};                 // a model directory whose weights are the start
  int64_t accumulate = 1;                // batches per update
  double label_smoothing = 0.1;
  int64_t average = 0;  // weights after the last N validations whose mean may become the model
  int64_t log_every = 100;
  uint64_t seed = 1;
  Precision precision = Precision::f32;
  int64_t threads = 0;        // 0: all cores
  double guided_weight = 0;   // of the distance from data.alignments; 0: 0.1 where there are any
  int64_t guided_layer = -1;  // of the decoder, whose first head is guided; −1: the last but one
  AlignmentStep guided_step = AlignmentStep::writes;

  void describe(Settings& s);
  LossOptions loss() const { return {label_smoothing, guided_weight}; }
};

struct ValidOptions {
  int64_t every = 0;  // updates; 0: at the end of an epoch
  // Then at least so many updates lie between two, so that a text of few lines is not validated,
  // and its model saved, again and again. No setting.
  int64_t apart = 100;
  std::vector<std::string> metrics = {"ppl"};  // of loss, ppl, bleu, chrf, accuracy
  std::string stop_metric = "ppl";             // what "best" means
  int64_t patience = 10;                       // validations without a new best; 0: no end
  int64_t beam = 1;
  double length_penalty = 1;
  BleuTokenizer tokenize = BleuTokenizer::automatic;
  bool lowercase = false;

  void describe(Settings& s);
  bool wants(const std::string& metric) const;  // listed, or the one that decides
};

struct CheckpointOptions {
  int64_t every = 1000;  // updates; also at each validation, at the end and on a signal
  int64_t keep = 3;

  void describe(Settings& s);
};

// All that a recipe says.
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
  // Fills in what follows from other settings; throws Error(code) for what does not go together.
  void complete(Exit code);
  std::vector<std::string> test_metrics() const;  // what is measured at the end
  bool validates() const;                         // whether there is a text for it

 private:
  void complete_guide(Exit code);
  void check_parallel(Exit code) const;
  void check_labelled(Exit code) const;
  void check_vocabulary(Exit code) const;
};

// Whether a larger value of the metric is better.
bool higher_is_better(const std::string& metric);

}  // namespace fovea
