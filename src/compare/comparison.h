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

// Buckets of `step` words each, shortest first. A bucket with too few sentences for a meaningful
// score is merged with the previous one. Empty lines belong to no bucket.
std::vector<LengthBucket> length_buckets(const std::vector<int64_t>& lengths, int64_t step);

// The test data and metrics of a comparison, which all its models share.
struct TestBench {
  const TrainData& data;
  ValidOptions valid;  // beam, length penalty, and the options of BLEU and chrF
  std::vector<LengthBucket> buckets;
  size_t sentence = 0;  // the line whose attention appears in the report
  std::vector<PairPieces> gold_pairs;
  std::vector<GoldLinks> gold;  // one for each pair; empty if there are no gold links
};

// Reads the gold links and chooses the sentence. Throws ExitCode::data if there is no test text, or
// if the links do not match their sentences.
TestBench make_bench(const TrainData& data, const TrainOptions& options,
                     const CompareOptions& compare);

// The results of one model.
struct ModelResults {
  double ppl = 0, bleu = 0, chrf = 0;
  double decode_words_per_s = 0;    // written pieces, including </s>
  std::optional<double> aer;        // from 0 to 1
  std::vector<double> bucket_bleu;  // as TestBench::buckets
  std::string translation;          // of the chosen sentence
};

// Returns nothing if `stop` becomes true before the end.
std::optional<ModelResults> measure_model(const Model& model, const TestBench& bench,
                                          const std::function<bool()>& stop);

// The attention of the chosen sentence and its reference (forced decoding).
struct ChosenPair {
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;       // empty without attention
};
ChosenPair attend_chosen(const Model& model, const TestBench& bench);

// The median of the words/s in a run's metrics.jsonl; nothing if the file has no such line.
std::optional<double> training_speed(const std::string& directory);

// DIRECTORY/measured.json has the results and the key of their conditions, so that they need not be
// measured again. Returns nothing if there are no results, or if their key is not `key`.
std::optional<ModelResults> read_measured(const std::string& directory, const std::string& key);
void write_measured(const std::string& directory, const std::string& key,
                    const ModelResults& measured);
// The key of the stored results of a directory; "" if there are none.
std::string stored_key(const std::string& directory);

}  // namespace fovea
