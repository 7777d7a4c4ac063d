#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/check.h"

namespace fovea {

class Settings;

// The rules by which a beam search selects hypotheses and stops: see docs/design.md, "Search".
enum class BeamRule { fovea, transformers };
// When the search for a sentence stops, if `beam` translations have finished. yes: at once. no: if
// no live hypothesis would rank before them at its present length. never: if no live hypothesis can
// rank before them at any length. Only for BeamRule::transformers.
enum class EarlyStopping { no, yes, never };

// The settings with which a model translates: `model.generation` in config.yml. Pieces are given by
// their names in a vocabulary of the model.
struct GenerationConfig {
  std::string start = "<s>";               // the piece that the decoder reads first
  std::vector<std::string> source_prefix;  // pieces before each source
  std::vector<std::string> source_suffix;  // pieces after each source, before its </s>
  bool source_end = true;                  // whether </s> follows each source
  std::vector<std::string> target_prefix;  // first pieces of each translation; not part of its text
  int64_t beam = 4;
  double length_penalty = 0.6;
  BeamRule beam_rule = BeamRule::fovea;
  EarlyStopping early_stopping = EarlyStopping::no;
  int64_t min_length = 0, max_length = 0;  // in pieces, target_prefix and </s> included; 0: none
  bool forced_end = true;                  // whether the piece at max_length must be </s>
  int64_t no_repeat_ngram = 0;             // n: no sequence of n pieces may occur twice; 0: no rule
  std::vector<std::string> suppress;       // pieces that a translation may not have
  bool renormalize = false;                // true: the probabilities of the allowed pieces sum to 1

  // The maximum number of pieces that the frame adds to a source, or to the words that the decoder
  // reads.
  int64_t added_pieces() const;

  void describe(Settings& s);
  void check(int64_t longest, ExitCode code) const;  // longest: ModelShape::max_length
  bool operator==(const GenerationConfig&) const = default;
};

}  // namespace fovea
