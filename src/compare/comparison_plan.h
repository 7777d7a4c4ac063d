#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "train/train_options.h"

namespace fovea {

// The `compare:` section of a comparison file: how to measure the models.
struct CompareOptions {
  int64_t sentence = 0;     // number of the test line to draw, from 1; 0: one of medium length
  int64_t length_step = 5;  // width of a bucket of source lengths, in words
  std::string gold, gold_source, gold_target;  // files: manual links, and their sentences
  int64_t gold_from = 1;                       // the number of the first word in a gold line

  void describe(Settings& s);
};

// One model of a comparison: its changes to the common recipe.
struct ComparisonVariant {
  std::string name;
  std::string settings;                   // YAML; entries have the line numbers of the file
  std::vector<std::string> changes = {};  // for the report: "model.attention: local-p"
  std::string file = {};                  // the file that defines the variant
};

// The parsed comparison file:
//
//   base: recipe.yml            a recipe or comparison beside this file, which this one modifies;
//                               or the keys of a recipe: data:, model:, …
//   compare: {sentence: 5}
//   variants:                   a map, or a list of names of known_variants(); default: those of
//                               the base, or all
//     global: {model.attention: global}
//     local-p: {model.attention: local-p, model.score: general}
struct ComparisonPlan {
  std::string file;
  CompareOptions options;
  std::vector<ComparisonVariant> variants;

  // Returns the settings of a variant, without calling TrainOptions::complete(). Merges the
  // defaults, the base, the keys of the file itself, `assignments` ("train.seed=2") and the
  // variant. In this order, a later value of a key replaces an earlier one.
  TrainOptions options_of(const ComparisonVariant& variant,
                          const std::vector<std::string>& assignments) const;

  // Throws ExitCode::data with file and line if the file is invalid, ExitCode::files if it cannot
  // be read.
  static ComparisonPlan read(const std::string& path);

 private:
  static constexpr int kMostBases = 2;  // a base may have a base itself
  static ComparisonPlan read(const std::string& path, int bases);

  struct Layer {
    std::string file, settings;  // YAML
  };
  std::vector<Layer> layers_;  // first the base, then the file
};

// Returns one variant for each mechanism of the recurrent models, with the name of the mechanism.
std::vector<ComparisonVariant> known_variants();

// Throws ExitCode::data with the name of the setting if two variants would not be trained and
// tested on the same text, because they differ in data, vocabularies, the maximum sentence length,
// the search or the tokenization of BLEU.
void check_same_text(const TrainOptions& a, const TrainOptions& b, const std::string& variant);

}  // namespace fovea
