#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea {

// A finished translation as ids. The score ranks the translations of one sentence.
struct Hypothesis {
  std::vector<int32_t> words;    // without <s>, with </s>
  std::vector<float> log_probs;  // of each word
  double log_prob = 0;           // Σ log_probs
  double score = 0;              // log_prob / length^α, what coverage adds included
};

// Equal scores: the smaller sequence of words first.
bool ranks_before(const Hypothesis& a, const Hypothesis& b);

// A way to go on from a live hypothesis.
struct Candidate {
  int32_t word;
  double log_prob;  // of the word, ≤ 0
};

// The last word of a hypothesis and the node of what stands before it.
struct BeamNode {
  int32_t parent, word;  // the first node, <s>, has no parent: −1
  float log_prob;
};

struct BeamOptions {
  int64_t size = 4;           // k: hypotheses kept at each step
  int64_t n_best = 1;         // finished hypotheses that best() must get right, ≤ size
  double length_penalty = 1;  // α
  int64_t max_length = 256;   // words of a hypothesis, </s> counted
  bool early_stop = true;     // leave off when nothing can change any more
};

// The search for one sentence. Each step extends every live hypothesis by every word, sorts the
// candidates by summed log-probability (equal sums: the earlier hypothesis, then the likelier word,
// then the smaller one) and keeps the first k; those that end with </s> are finished, the others
// live on and are again up to k at the next step (Sutskever et al. 2014). Length normalisation
// ranks finished hypotheses; it does not steer the search. A GPU does the same by itself: see Note
// [Ahead] in ops/steering.h.
class Beam {
 public:
  explicit Beam(const BeamOptions& options);

  const BeamOptions& options() const { return options_; }
  int64_t length() const { return length_; }  // words of each hypothesis that is alive
  int64_t live() const { return static_cast<int64_t>(live_.size()); }
  int32_t last_word(int64_t i) const { return nodes_[live_[i].node].word; }  // <s> at first
  // Whether the next word must be </s> for the hypotheses to keep to the length limit.
  bool at_limit() const { return length_ + 1 >= options_.max_length; }

  // candidates[i]: ways to go on from live hypothesis i, the best k of them suffice; the best
  // first, equal ones by word. Afterwards parents()[i] is what live hypothesis i grew from.
  void advance(std::span<const std::vector<Candidate>> candidates);
  std::span<const int32_t> parents() const { return parents_; }

  // Nothing is alive, or (see Note [Early stop]) nothing alive can enter the n best.
  bool finished() const { return live_.empty(); }

  // All hypotheses that were ever kept, as a tree; parents come before their children.
  const std::vector<BeamNode>& nodes() const { return nodes_; }

  // The words that the best hypothesis begins with, whatever comes: those that all that are alive
  // and the best that is finished have in common. With each step there are as many or more.
  std::vector<int32_t> certain() const;

  // The best n finished hypotheses, best first; fewer if fewer finished.
  std::vector<Hypothesis> best(int64_t n) const;

 private:
  struct Live {
    int32_t node;
    double log_prob;
  };
  struct Ended {
    int32_t node;
    double log_prob, score;
  };
  struct Extension {
    int32_t hypothesis;
    const Candidate* word;
    double log_prob;
  };
  double normalised(double log_prob, int64_t length) const;
  bool settled() const;
  std::vector<int32_t> words_to(int32_t node) const;
  Hypothesis trace(const Ended& ended) const;

  BeamOptions options_;
  int64_t length_ = 0;
  std::vector<BeamNode> nodes_;
  std::vector<Live> live_, next_;
  std::vector<Ended> ended_;
  std::vector<int32_t> parents_;
  std::vector<Extension> extensions_;
};

}  // namespace fovea
