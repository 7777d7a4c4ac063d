#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/comparison_plan.h"
#include "decode/attention_alignment.h"
#include "decode/model_bundle.h"
#include "eval/alignment_error_rate.h"
#include "train/training_data.h"

namespace fovea {

// Sentences of the test text whose sources have from `low` to `high` words.
struct LengthBucket {
  int64_t low = 0, high = 0;
  double mean = 0;  // of their lengths
  std::vector<size_t> lines;
};

// Buckets of `step` words each, shortest first; one with too few sentences to
// say anything is joined to the one before it. Empty lines are in none.
std::vector<LengthBucket> length_buckets(const std::vector<int64_t>& lengths, int64_t step);

// What a comparison measures on: the same for all of its models.
struct TestBench {
  const TrainData& data;
  ValidOptions valid;  // beam, length penalty, and how BLEU and chrF are counted
  std::vector<LengthBucket> buckets;
  size_t sentence = 0;  // the line whose attention is drawn
  std::vector<PairPieces> gold_pairs;
  std::vector<GoldLinks> gold;  // one for each pair; empty: nothing is known
};

// Reads the gold links and chooses the sentence. ExitCode::data where there is no
// test text, or the links do not fit their sentences.
TestBench make_bench(const TrainData& data, const TrainOptions& options,
                     const CompareOptions& compare);

// What is known of one model.
struct ModelResults {
  double ppl = 0, bleu = 0, chrf = 0;
  double decode_words_per_s = 0;    // pieces written, </s> counted
  std::optional<double> aer;        // from 0 to 1
  std::vector<double> bucket_bleu;  // as TestBench::buckets
  std::string translation;          // of the chosen sentence
};

// Nothing where `stop` became true on the way.
std::optional<ModelResults> measure_model(const Model& model, const TestBench& bench,
                                          const std::function<bool()>& stop);

// The attention of the chosen sentence and its reference (forced decoding).
struct ChosenPair {
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;       // none without attention
};
ChosenPair attend_chosen(const Model& model, const TestBench& bench);

// The median of the words/s that a run's metrics.jsonl tells of; nothing where
// it has no such line.
std::optional<double> training_speed(const std::string& directory);

// DIRECTORY/measured.json: results with what they hang on, so that they need
// not be measured again. Nothing where there are none, or where they hang on
// something else.
std::optional<ModelResults> read_measured(const std::string& directory,
                                          const std::string& made_with);
void write_measured(const std::string& directory, const std::string& made_with,
                    const ModelResults& measured);
// What the results of a directory hang on; empty where there are none.
std::string measured_with(const std::string& directory);

}  // namespace fovea
