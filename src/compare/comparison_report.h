#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/comparison.h"
#include "view/labelled_matrix.h"

namespace fovea {

// One row of a comparison.
struct ComparedModel {
  std::string name;
  std::vector<std::string> settings;  // changes to the recipe: "model.attention: local-p"
  int64_t parameters = 0, updates = 0;
  std::optional<double> train_words_per_s;
  std::optional<ModelResults> measured;           // absent: not yet measured, or failed
  std::optional<AttentionMatrix> attention = {};  // of the chosen sentence
  std::string failure = {};
};

// The results of a comparison so far.
struct ComparisonReport {
  std::string title;
  std::string sentence, reference;  // the chosen pair of the test text
  size_t line = 0;                  // the line of the chosen pair, from 1
  bool aer = false;                 // whether there are gold links for the AER
  std::vector<LengthBucket> buckets;
  std::vector<ComparedModel> models;
};

// Writes compare.md, compare.json and compare.html atomically to the directory.
void write_comparison(const std::string& directory, const ComparisonReport& comparison);

std::string comparison_json(const ComparisonReport& comparison);
std::string comparison_markdown(const ComparisonReport& comparison);
std::string comparison_html(const ComparisonReport& comparison);

}  // namespace fovea
