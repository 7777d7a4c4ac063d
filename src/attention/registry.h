#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "attention/attention.h"
#include "attention/static.h"
#include "base/settings.h"

namespace fovea {

// The sizes of a model on which its attention depends.
struct AttentionSizes {
  int64_t state, memory;   // number of elements of s_t and of h_j
  int64_t max_length = 0;  // words of the longest source; 0: not known
  SummaryStates summary = SummaryStates::both_ends;
};

// The choice of an attention mechanism and its options, with the names that recipes use.
struct AttentionConfig {
  std::string kind = "global";  // name of the mechanism, or "none"
  std::string score = "auto";   // name of the score; auto: additive if the mechanism uses a score
  int64_t inner = 0;            // A of additive and concat, P of local-p; 0: the size of s_t
  int64_t window = 10;          // D of local-m and local-p
  int64_t slack = 1;            // slack of forward
  int64_t gaussians = 10;       // K of window
  int64_t location_length = 0;  // rows of W_a of the score location; 0: max_length
  // Only for hard-sample:
  double lambda_r = 1, reward_discount = 1, lambda_e = 0.01, baseline_decay = 0.9;

  void describe_choice(Settings& s);   // declares the settings kind, score and inner
  void describe_details(Settings& s);  // declares the other options
  void describe(Settings& s) {
    describe_choice(s);
    describe_details(s);
  }
  // If the combination of options is impossible, throws Error(code) with the reason.
  void check(ExitCode code, const AttentionSizes& sizes) const;
  bool attends() const { return kind != "none"; }
  std::string score_name() const { return score == "auto" ? "additive" : score; }
  bool has_score() const;  // whether the mechanism computes its weights from a score
};

// Texts about a mechanism or a score, and the settings that it reads. docs/mechanisms.md has the
// same texts.
struct AttentionInfo {
  const char* name;                        // name in recipes
  const char* title;                       // "local attention, predictive"
  const char* text;                        // the computation, in one or two sentences
  const char* paper;                       // "Luong et al. 2015"
  const char* note = "";                   // what the drawing shows
  std::vector<const char*> settings = {};  // keys of `model:` that few other entries read
};

struct AttentionBuild;  // the arguments of `make`, private to registry.cpp

// An entry of the registry of mechanisms. Apart from this entry, only the file of its class knows a
// mechanism.
struct AttentionMechanism {
  AttentionInfo about;
  enum class ScoreUse { score, none } scoring;
  enum class Query { decoder, sentence } query;  // the decoder's state or the summary
  enum class Rows { own, same } rows;            // same: all steps have the same weights
  std::unique_ptr<Attention> (*make)(const AttentionBuild&);
  // Which x gives Bahdanau's first decoder state s_0 = tanh(W_s x): ←h_1 of the encoder, or the
  // tensor "context" of Attention::start().
  enum class FirstState { encoder, context } first_state = FirstState::encoder;
};

// All mechanisms and all scores, in the order of docs/mechanisms.md. To add one, add an entry.
std::span<const AttentionMechanism> attention_mechanisms();
std::vector<AttentionInfo> attention_scores();
const AttentionMechanism* find_mechanism(std::string_view name);  // null if there is none
// The texts about the attention of a Transformer, which recipes cannot choose.
const AttentionInfo& multi_head_attention();

// Creates a mechanism and declares its parameters under `scope`. Their names are the letters of its
// paper. For "none", returns null. REQUIRES: config.check() passed.
std::unique_ptr<Attention> make_attention(ParameterScope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes);
// Creates only the score function, for queries of size sizes.state.
std::unique_ptr<ScoreFunction> make_score(ParameterScope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes);

}  // namespace fovea
