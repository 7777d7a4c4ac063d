#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compare/comparison_plan.h"
#include "decode/attention_alignment.h"
#include "decode/model_bundle.h"
#include "decode/search.h"
#include "eval/alignment_error_rate.h"
#include "train/training_data.h"

namespace fovea {

// The sentences of the test text whose sources have `low` to `high` words, both included.
struct LengthBucket {
  int64_t low = 0, high = 0;
  double mean = 0;  // mean number of words
  std::vector<size_t> lines;
};

// Divides the sentences into buckets of `step` lengths each, shortest first. `lengths` has the
// number of source words of each line. A bucket with too few sentences for a meaningful score is
// merged with the previous bucket. Empty lines belong to no bucket.
std::vector<LengthBucket> length_buckets(const std::vector<int64_t>& lengths, int64_t step);

// The test data and the settings of the measurements, which all models of a comparison share.
struct TestBench {
  const TrainData& data;
  ValidOptions valid;  // the options of BLEU and chrF
  std::vector<LengthBucket> buckets;
  size_t sentence = 0;  // index of the line whose attention the report shows
  std::vector<PairPieces> gold_pairs;
  std::vector<GoldLinks> gold;  // one for each pair; empty if there are no gold links
  SearchOptions search = {};
};

// Reads the gold links and chooses the sentence. Throws ExitCode::data if there is no test text, or
// if the links do not match their sentences.
TestBench make_bench(const TrainData& data, const TrainOptions& options,
                     const CompareOptions& compare);

// The results of one model.
struct ModelResults {
  double ppl = 0, bleu = 0, chrf = 0;
  double decode_words_per_s = 0;    // target pieces with </s> per second
  std::optional<double> aer;        // from 0 to 1
  std::vector<double> bucket_bleu;  // BLEU of each of TestBench::buckets
  std::string translation;          // of the chosen sentence
};

// Measures a model on the bench. Returns nothing if `stop` becomes true before the end.
std::optional<ModelResults> measure_model(const Model& model, const TestBench& bench,
                                          const std::function<bool()>& stop);

// The attention between the chosen sentence and its reference, by forced decoding.
struct ChosenPair {
  std::vector<int32_t> source, target;  // with </s>
  std::vector<AttentionMap> maps;       // empty without attention
};
ChosenPair attend_chosen(const Model& model, const TestBench& bench);

// Returns the median of the words/s in the metrics.jsonl of a run, or nothing if the file has no
// such line.
std::optional<double> training_speed(const std::string& directory);

// Reads the results in DIRECTORY/measured.json, so that the model need not be measured again. `key`
// is text with all conditions on which the results depend. Returns nothing if there are no results,
// or if they were stored with another key.
std::optional<ModelResults> read_measured(const std::string& directory, const std::string& key);
void write_measured(const std::string& directory, const std::string& key,
                    const ModelResults& measured);
// Returns the key of the stored results of a directory, or "" if there are none.
std::string stored_key(const std::string& directory);

}  // namespace fovea
