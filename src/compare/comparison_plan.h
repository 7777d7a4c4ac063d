#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "train/train_options.h"

namespace fovea {

// The `compare:` section of a comparison file: how the models are measured.
struct CompareOptions {
  int64_t sentence = 0;     // test line whose attention is drawn; 0: one of medium length
  int64_t length_step = 5;  // words: width of a bucket of source lengths
  std::string gold, gold_source, gold_target;  // manual links, and their sentences
  int64_t gold_from = 1;                       // the number of the first word in `gold`

  void describe(Settings& s);
};

// One model of a comparison: its changes to the common recipe.
struct ComparisonVariant {
  std::string name;
  std::string settings;                   // YAML; its line numbers are those of the file
  std::vector<std::string> changes = {};  // the same for the report: "model.attention: local-p"
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

  // Returns the settings. Later ones override earlier ones: defaults, base, the file's own keys,
  // `assignments` ("train.seed=2"), the variant. complete() has not been called.
  TrainOptions options_of(const ComparisonVariant& variant,
                          const std::vector<std::string>& assignments) const;

  // Throws ExitCode::data with file and line if the file is invalid, ExitCode::files if it cannot
  // be read.
  static ComparisonPlan read(const std::string& path);

 private:
  static constexpr int kMostBases = 2;  // a base may have a base
  static ComparisonPlan read(const std::string& path, int bases);

  struct Layer {
    std::string file, settings;  // YAML
  };
  std::vector<Layer> layers_;  // the base is first
};

// One variant for each mechanism of the recurrent models, by the mechanism's name.
std::vector<ComparisonVariant> known_variants();

// Throws ExitCode::data with the name of the setting if two variants would not be trained and
// tested on the same text, because they differ in data, vocabularies, the maximum sentence length,
// the search or the tokenization of BLEU.
void check_same_text(const TrainOptions& a, const TrainOptions& b, const std::string& variant);

}  // namespace fovea
