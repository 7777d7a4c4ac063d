#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"

namespace fovea {

class Settings;

// The rule by which a beam search selects and stops: docs/design.md, "Search".
enum class BeamRule { fovea, transformers };
// When the search for a sentence stops, once as many translations have finished as the beam is
// wide: if no live hypothesis of its present length can rank before them (no), at once (yes), or if
// none of any length can (never). For BeamRule::transformers.
enum class EarlyStopping { no, yes, never };

// The settings with which a model translates: `model.generation` in config.yml. Pieces are names
// of a vocabulary of the model.
struct GenerationConfig {
  std::string start = "<s>";               // the piece that the decoder reads first
  std::vector<std::string> source_prefix;  // before each source
  std::vector<std::string> source_suffix;  // after each source, before </s> of source_end
  bool source_end = true;                  // </s> after each source
  std::vector<std::string> target_prefix;  // of each translation, but not part of its text
  int64_t beam = 4;
  double length_penalty = 0.6;
  BeamRule beam_rule = BeamRule::fovea;
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t min_length = 0, max_length = 0;  // pieces with target_prefix and </s>; 0: no limit
  bool forced_end = true;                  // the piece at max_length is </s>
  int64_t no_repeat_ngram = 0;             // no n pieces occur twice; 0: they may
  std::vector<std::string> suppress;       // pieces that no translation has
  bool renormalize = false;                // the probabilities of the other pieces sum to 1

  void describe(Settings& s);
  void check(ExitCode code) const;
  bool operator==(const GenerationConfig&) const = default;
};

}  // namespace fovea
