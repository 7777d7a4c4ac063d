#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/required_terms.h"
#include "models/generation_config.h"

namespace fovea {

// A finished translation as word ids. Its score ranks it among the translations of one sentence.
struct Hypothesis {
  std::vector<int32_t> words;    // without the pieces of the frame, with </s>
  std::vector<float> log_probs;  // of each word
  double log_prob = 0;           // Σ log_probs
  double score = 0;              // log_prob / length^α, plus the coverage penalty if any
};

// Whether a ranks before b: it has a higher score or, if the scores are equal, a smaller sequence
// of words.
bool ranks_before(const Hypothesis& a, const Hypothesis& b);

// A word that can follow a live hypothesis.
struct Candidate {
  int32_t word;
  double log_prob;       // log p of this word after the hypothesis, ≤ 0
  TermState terms = {};  // of the hypothesis with this word
  int32_t begun = 0;     // RequiredTerms::begun of that state
};

// A node of the search tree. It represents a hypothesis by its last word. `parent` is the index of
// the node of the hypothesis without this word.
struct BeamNode {
  int32_t parent, word;  // the first node has no parent: −1
  float log_prob;
};

struct BeamOptions {
  int64_t size = 4;           // k: maximum number of hypotheses that a step keeps
  int64_t n_best = 1;         // best(n) is exact for n up to this number; ≤ size
  double length_penalty = 1;  // α
  int64_t max_length = 256;   // maximum words of a hypothesis, including </s>
  bool early_stop = true;     // end when the n_best best cannot change any more
  BeamRule rule = BeamRule::fovea;
  EarlyStopping early_stopping = EarlyStopping::no;  // of BeamRule::transformers
  int64_t context = 0;     // pieces before the first word that count for the normalisation
  bool forced_end = true;  // at the length limit only </s> is possible
  int64_t terms = 0;       // number of required terms
  int32_t start = 1;       // the word before the first word
};

// The beam search for one sentence (Sutskever et al. 2014). Each step extends every live hypothesis
// by every word, sorts the candidates by summed log-probability and keeps the first k. Equal sums
// are ordered by hypothesis, then by the log-probability of the word, then by the id of the word.
// Hypotheses that end with </s> are finished; the others stay alive, and the next step again keeps
// up to k. Length normalisation only ranks finished hypotheses: it does not influence the search.
// A GPU can run the same algorithm itself: see Note [Ahead] in cache/device_beam.h.
//
// With BeamRule::transformers, the next candidates take the places of finished hypotheses, so that
// k stay alive; see Note [Stop rules]. With required terms, see Note [Banks].
class Beam {
 public:
  explicit Beam(const BeamOptions& options);

  const BeamOptions& options() const { return options_; }
  int64_t length() const { return length_; }  // number of words of each live hypothesis
  int64_t live() const { return static_cast<int64_t>(live_.size()); }
  int32_t last_word(int64_t i) const { return nodes_[live_[i].node].word; }  // <s> at first
  std::vector<int32_t> words(int64_t i) const { return words_to(live_[i].node); }
  TermState terms(int64_t i) const { return live_[i].terms; }
  // Whether the next word is the last one because of the length limit, and whether it must be </s>.
  bool at_limit() const { return length_ + 1 >= options_.max_length; }
  bool must_end() const { return at_limit() && options_.forced_end; }

  // The number of candidates of a hypothesis that suffice for advance().
  int64_t candidates() const {
    return options_.rule == BeamRule::fovea ? options_.size : 2 * options_.size;
  }
  // Makes one step. candidates[i] has the possible next words of live hypothesis i, the most
  // probable first, and equally probable words in the order of their ids. After the call, live
  // hypothesis i extends the former live hypothesis parents()[i].
  void advance(std::span<const std::vector<Candidate>> candidates);
  std::span<const int32_t> parents() const { return parents_; }

  // Whether no hypothesis is alive. advance() removes all live hypotheses when none of them can
  // enter the n best any more (Note [Early stop]), or when the rule stops (Note [Stop rules]).
  bool finished() const { return live_.empty(); }

  // The tree of all hypotheses that a step has kept. Each node comes after its parent.
  const std::vector<BeamNode>& nodes() const { return nodes_; }

  // The longest common prefix of all live hypotheses and the best finished hypothesis. The final
  // best hypothesis begins with these words. In later steps the prefix can only become longer.
  std::vector<int32_t> common_prefix() const;

  // Returns the n best finished hypotheses, best first. If fewer have finished, returns all of
  // them.
  std::vector<Hypothesis> best(int64_t n) const;

 private:
  struct LiveHypothesis {
    int32_t node;
    double log_prob;
    TermState terms = {};
  };
  struct FinishedHypothesis {
    int32_t node;
    double log_prob, score;
  };
  struct Extension {
    int32_t hypothesis;
    const Candidate* word;
    double log_prob;
    bool chosen = false;
  };
  double normalised(double log_prob, int64_t length) const;
  void sort_extensions();
  void choose();
  void keep(const Extension& extension);
  void finish_live();
  bool n_best_known() const;
  bool stops_by_rule() const;
  std::vector<int32_t> words_to(int32_t node) const;
  Hypothesis trace(const FinishedHypothesis& finished) const;

  BeamOptions options_;
  int64_t length_ = 0;
  std::vector<BeamNode> nodes_;
  std::vector<LiveHypothesis> live_, next_;
  std::vector<FinishedHypothesis> finished_;
  std::vector<int32_t> parents_;
  std::vector<Extension> extensions_;
};

}  // namespace fovea
