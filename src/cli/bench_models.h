#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/model_config.h"
#include "text/batch.h"

namespace fovea {

// A model shape with a name, and the default batch, which is also used to measure other toolkits.
struct BenchModel {
  ModelConfig config;
  int64_t batch, length;
};
const std::map<std::string, BenchModel>& bench_models();

// Random words for one sentence, without </s>.
class Random;
std::vector<int32_t> random_words(Random& random, const ModelConfig& config, int64_t count);

// Batches of sentence pairs of random words. Lengths, with </s>, are between 0.7 and 1 times the
// length of the model.
std::vector<PairBatch> random_batches(const BenchModel& model, int64_t count);

// Multiply-adds in the matrix products for one word of the source and one of the target.
struct WordWork {
  double source, target;
};
// Includes attention over `length` words.
WordWork work_per_word(const ModelConfig& config, double length);

// The label of a key of the results: "tokens_per_s" gives "tokens per s", "arena_bytes" "arena".
std::string label_of_key(std::string key);

// The value of a key as text, with three significant digits, since later digits vary between runs.
// Large numbers have commas.
std::string readable_value(const std::string& key, const nlohmann::ordered_json& value);

}  // namespace fovea
