#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/settings.h"
#include "train/train_options.h"

namespace fovea {

// What `compare:` of a comparison's file says: how the models are measured.
struct CompareOptions {
  int64_t sentence = 0;     // line of the test text whose attention is drawn; 0: a middling one
  int64_t length_step = 5;  // words: how far source lengths of one bucket lie apart
  std::string gold, gold_source, gold_target;  // links that people made, and their sentences
  int64_t gold_from = 1;                       // the number of the first word in `gold`

  void describe(Settings& s);
};

// One model of a comparison: what it changes in the common recipe.
struct ComparisonVariant {
  std::string name;
  std::string settings;                   // YAML; lines have the numbers they have in the file
  std::vector<std::string> changes = {};  // the same to be read: "model.attention: local-p"
  std::string file = {};                  // where it stands
};

// The file of a comparison, read:
//
//   base: recipe.yml            a recipe or comparison beside this file, of which this one changes
//                               something; or its keys here: data:, model:, …
//   compare: {sentence: 5}
//   variants:                   a map; or a list of names of known_variants(); default: the
//                               base's, or all
//     global: {model.attention: global}
//     local-p: {model.attention: local-p, model.score: general}
struct ComparisonPlan {
  std::string file;
  CompareOptions options;
  std::vector<ComparisonVariant> variants;

  // Settings in the order in which they count: defaults, base, the file's own keys, `assignments`
  // ("train.seed=2"), the variant's. Not yet complete().
  TrainOptions options_of(const ComparisonVariant& variant,
                          const std::vector<std::string>& assignments) const;

  // Any fault is ExitCode::data with file and line; ExitCode::files where a file cannot be read.
  static ComparisonPlan read(const std::string& path);

 private:
  static constexpr int kMostBases = 2;  // one on another
  static ComparisonPlan read(const std::string& path, int bases);

  struct Layer {
    std::string file, settings;  // YAML
  };
  std::vector<Layer> layers_;  // the base first
};

// One variant for each mechanism of the recurrent models, by the mechanism's name.
std::vector<ComparisonVariant> known_variants();

// ExitCode::data, naming the setting, where two variants would not be trained and tested on the
// same text: differences in data, vocabularies, the longest sentence, the search or counting of
// BLEU.
void check_same_text(const TrainOptions& a, const TrainOptions& b, const std::string& variant);

}  // namespace fovea
