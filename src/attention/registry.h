#pragma once

#include <memory>
#include <string>

#include "attention/attention.h"
#include "attention/static.h"
#include "base/settings.h"

namespace fovea {

// What an attention must know of the model it serves.
struct AttentionSizes {
  int64_t state, memory;   // of s_t and of h_j
  int64_t max_length = 0;  // longest source; 0: not known
  Summary summary = Summary::both_ends;
};

// Which attention of the literature, in the names that recipes use.
struct AttentionConfig {
  std::string kind = "global";  // or none
  std::string score = "auto";   // additive, or nothing where the mechanism has no score
  int64_t inner = 0;            // A of additive, concat and local-p; 0: the state's size
  int64_t window = 10;          // D of local-m and local-p
  int64_t slack = 1;            // forward
  int64_t gaussians = 10;       // K of window
  int64_t location_length = 0;  // positions of the score location; 0: max_length
  // hard-sample
  double lambda_r = 1, reward_discount = 1, lambda_e = 0.01, baseline_decay = 0.9;

  void describe_choice(Settings& s);   // kind, score and its width
  void describe_details(Settings& s);  // what single mechanisms need
  void describe(Settings& s) {
    describe_choice(s);
    describe_details(s);
  }
  // Throws Error(code) for combinations that cannot be built, with the reason.
  void check(Exit code, const AttentionSizes& sizes) const;
  bool attends() const { return kind != "none"; }
  std::string score_name() const { return score == "auto" ? "additive" : score; }
};

// Declares the mechanism's parameters under `scope`, by the letters of its paper. Null for none.
// REQUIRES: config.check() passed.
std::unique_ptr<Attention> make_attention(Scope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes);
// The score alone, for queries of sizes.state.
std::unique_ptr<Score> make_score(Scope scope, const AttentionConfig& config,
                                  const AttentionSizes& sizes);

}  // namespace fovea
