#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "text/batch.h"

namespace fovea {

// A model shape with a name, and its default batch. Measurements of other toolkits use the same
// batch.
struct BenchModel {
  ModelConfig config;
  int64_t batch, length;
};
const std::map<std::string, BenchModel>& bench_models();

// Returns random words for one sentence, without </s>.
class Random;
std::vector<int32_t> random_words(Random& random, const ModelConfig& config, int64_t count);

// Returns batches of sentence pairs of random words. Lengths, with </s>, are between 0.7 and 1
// times the length that `model` gives.
std::vector<PairBatch> random_batches(const BenchModel& model, int64_t count);

// The number of multiply-adds in the matrix products for one source word and for one target word.
struct WordWork {
  double source, target;
};
// Computes the work, including attention over `length` words.
WordWork work_per_word(const ModelConfig& config, double length);

// Returns the label of a key of the results: "tokens per s" for "tokens_per_s", and "arena" for
// "arena_bytes".
std::string label_of_key(std::string key);

// Returns the value of a key as text, with three significant digits, because later digits vary
// between runs. Large numbers have commas.
std::string readable_value(const std::string& key, const nlohmann::ordered_json& value);

}  // namespace fovea
