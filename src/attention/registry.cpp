#include "attention/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "attention/additive.h"
#include "attention/concat.h"
#include "attention/dot.h"
#include "attention/fixed.h"
#include "attention/forward.h"
#include "attention/general.h"
#include "attention/global.h"
#include "attention/hard_argmax.h"
#include "attention/hard_sample.h"
#include "attention/local_m.h"
#include "attention/local_p.h"
#include "attention/location.h"
#include "attention/window.h"

namespace fovea {

struct AttentionBuild {
  ParameterScope scope;
  const AttentionConfig& config;
  AttentionSizes sizes;

  int64_t inner() const { return config.inner ? config.inner : sizes.state; }
  int64_t positions() const {
    return config.location_length ? config.location_length : sizes.max_length;
  }
  std::unique_ptr<ScoreFunction> score() const { return make_score(scope, config, sizes); }
};

namespace {

using ScorePtr = std::unique_ptr<ScoreFunction>;
using AttentionPtr = std::unique_ptr<Attention>;
using ScoreUse = AttentionMechanism::ScoreUse;
using Query = AttentionMechanism::Query;
using Rows = AttentionMechanism::Rows;

template <class Made, class... Args>
auto make(Args&&... args) {
  return std::make_unique<Made>(std::forward<Args>(args)...);
}

// An entry of the registry of score functions.
struct ScoreEntry {
  AttentionInfo about;
  ScorePtr (*make)(const AttentionBuild&);
};
const ScoreEntry kScores[] = {
    {{.name = "dot", .title = "dot score", .text = "e = s·h.", .paper = "Luong et al. 2015"},
     [](const AttentionBuild&) -> ScorePtr { return make<DotScore>(); }},
    {{.name = "scaled-dot",
      .title = "scaled dot score",
      .text = "e = s·h / √d: the width of the states does not make the weights sharper.",
      .paper = "after Vaswani et al. 2017"},
     [](const AttentionBuild&) -> ScorePtr { return make<ScaledDotScore>(); }},
    {{.name = "general",
      .title = "general score",
      .text = "e = s·W h: a learned matrix between state and annotation.",
      .paper = "Luong et al. 2015"},
     [](const AttentionBuild& p) -> ScorePtr {
       return make<GeneralScore>(p.scope, p.sizes.state, p.sizes.memory);
     }},
    {{.name = "concat",
      .title = "concat score",
      .text = "e = v·tanh(W [s; h]).",
      .paper = "Luong et al. 2015",
      .settings = {"attention_size"}},
     [](const AttentionBuild& p) -> ScorePtr {
       return make<ConcatScore>(p.scope,
                                ConcatScore::Sizes{p.sizes.state, p.sizes.memory, p.inner()});
     }},
    {{.name = "additive",
      .title = "additive score",
      .text = "e = v·tanh(W s + U h).",
      .paper = "Bahdanau et al. 2015",
      .settings = {"attention_size"}},
     [](const AttentionBuild& p) -> ScorePtr {
       return make<AdditiveScore>(p.scope,
                                  AdditiveScore::Sizes{p.sizes.state, p.sizes.memory, p.inner()});
     }},
    {{.name = "location",
      .title = "location score",
      .text = "e = W s: the score of a position depends only on the state, not on the words.",
      .paper = "Luong et al. 2015",
      .note = "The weights of all positions depend only on the state of the decoder, "
              "a = softmax(W s). This score does not use the words at these positions.",
      .settings = {"location_length"}},
     [](const AttentionBuild& p) -> ScorePtr {
       return make<LocationScore>(p.scope, p.sizes.state, p.positions());
     }},
};

const AttentionMechanism kMechanisms[] = {
    {{.name = "none",
      .title = "no attention",
      .text = "The decoder starts from the last encoder state and receives nothing else about the "
              "sentence. There are no weights.",
      .paper = "Sutskever et al. 2014"},
     ScoreUse::none,
     Query::sentence,
     Rows::own,
     [](const AttentionBuild&) -> AttentionPtr { return nullptr; }},
    {{.name = "global",
      .title = "global attention",
      .text = "The decoder attends to all words, with new weights at each step.",
      .paper = "Bahdanau et al. 2015",
      .note = "The weights of all source words are computed again at each step."},
     ScoreUse::score,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr { return make<GlobalAttention>(p.score()); }},
    {{.name = "local-m",
      .title = "local attention, monotonic",
      .text = "The decoder attends to a window of words around the position of the target word.",
      .paper = "Luong et al. 2015",
      .note = "The window moves by one word at each step.",
      .settings = {"window"}},
     ScoreUse::score,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr {
       return make<LocalMonotonicAttention>(p.score(), p.config.window);
     }},
    {{.name = "local-p",
      .title = "local attention, predictive",
      .text = "The state predicts the middle of the window, and a Gaussian around it favours near "
              "words.",
      .paper = "Luong et al. 2015",
      .note = "The model predicts a position p and attends to the window of ±D words around it. "
              "The curve is the Gaussian factor: less weight farther from p. The weights sum to "
              "less than 1.",
      .settings = {"window", "attention_size"}},
     ScoreUse::score,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr {
       return make<LocalPredictiveAttention>(
           p.scope, p.score(),
           LocalPredictiveAttention::Sizes{p.sizes.state, p.inner(), p.config.window});
     }},
    {{.name = "hard-argmax",
      .title = "hard attention, the best word",
      .text = "Each step attends to the one word with the highest score.",
      .paper = "after Xu et al. 2015",
      .note = "One piece is chosen. The outlines show the distribution behind the choice."},
     ScoreUse::score,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr { return make<HardArgmaxAttention>(p.score()); }},
    {{.name = "hard-sample",
      .title = "hard attention, sampled",
      .text = "Each step attends to one word: a random word in training (REINFORCE), the most "
              "likely word in translation.",
      .paper = "Xu et al. 2015",
      .note = "One piece is chosen. The outlines show the distribution behind the choice.",
      .settings = {"reward_weight", "reward_discount", "entropy_weight", "baseline_decay"}},
     ScoreUse::score,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr { return make<HardSampleAttention>(p.score()); }},
    {{.name = "forward",
      .title = "attention that moves forward",
      .text = "The weight that earlier steps gave to a word reduces its weight, and the focus "
              "moves back by at most a few words.",
      .paper = "coverage: Tu et al. 2016",
      .note = "Words to the left of the frontier have no weight. The frontier follows the focus of "
              "the previous step, by default one word behind it, so the model can go back by one "
              "word.",
      .settings = {"slack"}},
     ScoreUse::score,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr {
       return make<ForwardAttention>(p.score(), p.config.slack);
     }},
    {{.name = "window",
      .title = "Graves' window",
      .text = "Gaussians over positions whose means κ only move forward. The state is not compared "
              "with the words.",
      .paper = "Graves 2013",
      .note = "Each κ is the middle of a soft window, which only moves forward. Graves’s weights φ "
              "need not sum to 1. Maps and bars show φ divided by its sum.",
      .settings = {"gaussians"}},
     ScoreUse::none,
     Query::decoder,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr {
       return make<WindowAttention>(p.scope, p.sizes.state, p.config.gaussians);
     }},
    {{.name = "static",
      .title = "static attention",
      .text = "The weights are computed once per sentence, and every step receives the same "
              "context.",
      .paper = "after Hermann et al. 2015",
      .note = "The weights are the same at every step: they depend only on the source."},
     ScoreUse::score,
     Query::sentence,
     Rows::same,
     [](const AttentionBuild& p) -> AttentionPtr {
       return make<StaticAttention>(p.score(), p.sizes.summary);
     }},
    {{.name = "fixed",
      .title = "fixed context",
      .text = "No attention: every step receives the same summary of the sentence, "
              "c = tanh(V [→h_S ; ←h_1]).",
      .paper = "Cho et al. 2014",
      .note = "This is not attention. Every step receives the same summary of the sentence. The "
              "marks show the words at which the readings of the encoder end."},
     ScoreUse::none,
     Query::sentence,
     Rows::own,
     [](const AttentionBuild& p) -> AttentionPtr {
       return make<FixedContext>(p.scope, p.sizes.memory, p.sizes.summary);
     },
     AttentionMechanism::FirstState::context},
};

const AttentionInfo kMultiHead = {
    .name = "multi-head",
    .title = "Transformer",
    .text = "Attention with several heads in every layer of both sides, without recurrence.",
    .paper = "Vaswani et al. 2017",
    .note = "Each head computes the weights of all source words again at each step."};

template <class Table>
auto find_entry(const Table& table, std::string_view name) {
  return std::ranges::find_if(table, [&](const auto& entry) { return name == entry.about.name; });
}

template <class Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.push_back(entry.about.name);
  return names;
}

// The sizes of the score function, in which `state` is the size of the query. For static attention,
// the query is the summary of a sentence, which has the size of the memory.
AttentionSizes sizes_of_query(const AttentionMechanism& mechanism, AttentionSizes sizes) {
  if (mechanism.query == Query::sentence) sizes.state = sizes.memory;
  return sizes;
}

void check_score(ExitCode code, const std::string& score, const AttentionConfig& config,
                 const AttentionSizes& sizes) {
  if (score == "dot" || score == "scaled-dot")
    check(sizes.state == sizes.memory, code, "model.score: ", score,
          " multiplies states with annotations of the same size, but a state has ", sizes.state,
          " numbers and an annotation ", sizes.memory,
          "; choose general, concat or additive, or make the sizes equal");
  if (score != "location") return;
  const int64_t positions = config.location_length ? config.location_length : sizes.max_length;
  check(positions > 0, code,
        "model.location_length: the score location needs the number of positions that it can ",
        "distinguish; set it, or model.max_length");
  if (config.kind == "local-m" || config.kind == "local-p")
    check(positions >= sizes.max_length, code, "model.location_length: ", positions,
          " positions are fewer than model.max_length, ", sizes.max_length, "; with attention ",
          config.kind, " a window beyond the last position would be empty: use 0 or at least ",
          sizes.max_length);
}

}  // namespace

std::span<const AttentionMechanism> attention_mechanisms() { return kMechanisms; }

std::vector<AttentionInfo> attention_scores() {
  std::vector<AttentionInfo> all;
  for (const ScoreEntry& entry : kScores) all.push_back(entry.about);
  return all;
}

const AttentionMechanism* find_mechanism(std::string_view name) {
  const auto* entry = find_entry(kMechanisms, name);
  return entry == std::end(kMechanisms) ? nullptr : entry;
}

const AttentionInfo& multi_head_attention() { return kMultiHead; }

bool AttentionConfig::has_score() const {
  const AttentionMechanism* mechanism = find_mechanism(kind);
  return mechanism && mechanism->scoring == ScoreUse::score;
}

void AttentionConfig::describe_choice(Settings& s) {
  std::vector<std::string> scores = names_of(kScores);
  scores.insert(scores.begin(), "auto");
  s.choice("attention", kind, names_of(kMechanisms),
           "attention mechanism; none: the decoder sees only the last encoder state");
  s.choice(
      "score", score, scores,
      "score that compares state and word; auto: additive, or none if the mechanism uses none");
  s.field("attention_size", inner,
          "inner width of the scores additive and concat and of local-p; 0: the decoder's size")
      .between(0, 65536);
}

void AttentionConfig::describe_details(Settings& s) {
  s.field("window", window, "local-m, local-p: words on each side of the window's centre (D)")
      .between(1, 65536);
  s.field("slack", slack, "forward: number of words by which the focus may move back")
      .between(0, 65536);
  s.field("gaussians", gaussians, "window: number of Gaussians (K)").between(1, 1024);
  s.field("location_length", location_length,
          "location: number of positions that it can distinguish; 0: max_length")
      .between(0, 65536);
  s.field("reward_weight", lambda_r,
          "hard-sample: weight of the reward of a choice; 0.1 to 0.3 learn best")
      .at_least(0);
  s.field("reward_discount", reward_discount,
          "hard-sample: discount per step of later words in the reward of a choice; 1: unbiased "
          "gradient; 0: only the word of the same step, which is less noisy")
      .between(0, 1);
  s.field("entropy_weight", lambda_e,
          "hard-sample: weight of the entropy bonus, which keeps up exploration")
      .at_least(0);
  s.field("baseline_decay", baseline_decay,
          "hard-sample: decay of the running mean reward (the baseline)")
      .between(0, 1);
}

void AttentionConfig::check(ExitCode code, const AttentionSizes& sizes) const {
  const auto* entry = find_entry(kMechanisms, kind);
  fovea::check(entry != std::end(kMechanisms), code, "model.attention: there is no '", kind,
               "'; use one of ", fmt::format("{}", fmt::join(names_of(kMechanisms), ", ")));
  fovea::check(score == "auto" || find_entry(kScores, score) != std::end(kScores), code,
               "model.score: there is no '", score, "'; use auto or one of ",
               fmt::format("{}", fmt::join(names_of(kScores), ", ")));
  fovea::check(entry->scoring == ScoreUse::score || score == "auto", code,
               "model.score: attention ", kind, " compares nothing and has no score, found ", score,
               "; remove model.score");
  fovea::check(window >= 1, code, "model.window: ", window, " words; at least 1 is needed");
  const bool halves =
      attends() && entry->query == Query::sentence && sizes.summary == SummaryStates::both_ends;
  fovea::check(!halves || sizes.memory % 2 == 0, code, "model.attention: ", kind,
               " reads the two halves of an annotation, which needs an even size, found an odd ",
               "size of ", sizes.memory, "; change model.encoder_size");
  if (entry->scoring == ScoreUse::score)
    check_score(code, score_name(), *this, sizes_of_query(*entry, sizes));
}

std::unique_ptr<Attention> make_attention(ParameterScope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes) {
  const auto* entry = find_entry(kMechanisms, config.kind);
  assert(entry != std::end(kMechanisms));
  return entry->make({scope, config, sizes_of_query(*entry, sizes)});
}

std::unique_ptr<ScoreFunction> make_score(ParameterScope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes) {
  const auto* entry = find_entry(kScores, config.score_name());
  assert(entry != std::end(kScores));
  return entry->make({scope, config, sizes});
}

}  // namespace fovea
