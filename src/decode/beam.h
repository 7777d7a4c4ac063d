#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea {

// A finished translation as word ids. Its score ranks it among the translations of one sentence.
struct Hypothesis {
  std::vector<int32_t> words;    // without <s>, with </s>
  std::vector<float> log_probs;  // of each word in `words`
  double log_prob = 0;           // Σ log_probs
  double score = 0;              // log_prob / length^α, plus the coverage penalty if any
};

// Whether a ranks before b: it has a higher score or, if the scores are equal, a smaller sequence
// of words.
bool ranks_before(const Hypothesis& a, const Hypothesis& b);

// A word that can follow a live hypothesis.
struct Candidate {
  int32_t word;
  double log_prob;  // log p of this word after the hypothesis; ≤ 0
};

// A node of the search tree. It represents a hypothesis by its last word. `parent` is the index of
// the node of the hypothesis without this word.
struct BeamNode {
  int32_t parent, word;  // the first node is <s> and has parent −1
  float log_prob;
};

struct BeamOptions {
  int64_t size = 4;           // k: maximum number of hypotheses that a step keeps
  int64_t n_best = 1;         // best(n) is exact for n up to this number; ≤ size
  double length_penalty = 1;  // α
  int64_t max_length = 256;   // maximum number of words of a hypothesis, with </s>
  bool early_stop = true;     // end when the n_best best hypotheses cannot change
};

// The beam search for one sentence (Sutskever et al. 2014). Each step extends every live hypothesis
// by every word. It sorts these candidates by the sum of their log-probabilities and keeps the
// first k. Candidates with equal sums are sorted by hypothesis, then by the log-probability of the
// word, then by its id. Hypotheses that end with </s> are finished. The others stay alive, and the
// next step again keeps up to k. Length normalisation only ranks finished hypotheses and does not
// influence the search. A GPU can run the same algorithm: see Note [Ahead] in cache/device_beam.h.
class Beam {
 public:
  explicit Beam(const BeamOptions& options);

  const BeamOptions& options() const { return options_; }
  int64_t length() const { return length_; }  // number of words of each live hypothesis
  int64_t live() const { return static_cast<int64_t>(live_.size()); }
  int32_t last_word(int64_t i) const { return nodes_[live_[i].node].word; }  // first <s>
  // Whether the length limit requires </s> as the next word.
  bool at_limit() const { return length_ + 1 >= options_.max_length; }

  // Makes one step. candidates[i] has words that can follow live hypothesis i, the most probable
  // first; equally probable words are sorted by id. The best k words of each hypothesis suffice.
  // After the call, live hypothesis i extends the previous live hypothesis parents()[i].
  void advance(std::span<const std::vector<Candidate>> candidates);
  std::span<const int32_t> parents() const { return parents_; }

  // Whether no hypothesis is alive. When no live hypothesis can still enter the n best, advance()
  // removes all of them (Note [Early stop]).
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
  };
  struct FinishedHypothesis {
    int32_t node;
    double log_prob, score;
  };
  struct Extension {
    int32_t hypothesis;
    const Candidate* word;
    double log_prob;
  };
  double normalised(double log_prob, int64_t length) const;
  bool n_best_known() const;
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
