#include "attention/registry.h"

#include <algorithm>
#include <vector>

#include "attention/additive.h"
#include "attention/concat.h"
#include "attention/dot.h"
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
namespace {

// What a line below builds with.
struct Plan {
  Scope scope;
  const AttentionConfig& config;
  AttentionSizes sizes;

  int64_t inner() const { return config.inner ? config.inner : sizes.state; }
  int64_t positions() const {
    return config.location_length ? config.location_length : sizes.max_length;
  }
  std::unique_ptr<Score> score() const { return make_score(scope, config, sizes); }
};

template <class Made, class... Parts>
auto made(Parts&&... parts) {
  return std::make_unique<Made>(std::forward<Parts>(parts)...);
}

// A new score is one line here.
struct ScoreLine {
  const char* name;
  std::unique_ptr<Score> (*make)(const Plan&);
};
using ScoreMade = std::unique_ptr<Score>;
const ScoreLine kScores[] = {
    {"dot", [](const Plan&) -> ScoreMade { return made<DotScore>(); }},
    {"scaled-dot", [](const Plan&) -> ScoreMade { return made<ScaledDotScore>(); }},
    {"general",
     [](const Plan& p) -> ScoreMade {
       return made<GeneralScore>(p.scope, p.sizes.state, p.sizes.memory);
     }},
    {"concat",
     [](const Plan& p) -> ScoreMade {
       return made<ConcatScore>(p.scope,
                                ConcatScore::Sizes{p.sizes.state, p.sizes.memory, p.inner()});
     }},
    {"additive",
     [](const Plan& p) -> ScoreMade {
       return made<AdditiveScore>(p.scope,
                                  AdditiveScore::Sizes{p.sizes.state, p.sizes.memory, p.inner()});
     }},
    {"location",
     [](const Plan& p) -> ScoreMade {
       return made<LocationScore>(p.scope, p.sizes.state, p.positions());
     }},
};

enum class Asks { score, nothing };
enum class Asking { decoder, sentence };  // whose state is compared with the words

// A new mechanism is one line here.
struct KindLine {
  const char* name;
  Asks asks;
  Asking asking;
  std::unique_ptr<Attention> (*make)(const Plan&);
};
using Made = std::unique_ptr<Attention>;
const KindLine kKinds[] = {
    {"none", Asks::nothing, Asking::decoder, [](const Plan&) -> Made { return nullptr; }},
    {"global", Asks::score, Asking::decoder,
     [](const Plan& p) -> Made { return made<GlobalAttention>(p.score()); }},
    {"local-m", Asks::score, Asking::decoder,
     [](const Plan& p) -> Made {
       return made<LocalMonotonicAttention>(p.score(), p.config.window);
     }},
    {"local-p", Asks::score, Asking::decoder,
     [](const Plan& p) -> Made {
       return made<LocalPredictiveAttention>(
           p.scope, p.score(),
           LocalPredictiveAttention::Sizes{p.sizes.state, p.inner(), p.config.window});
     }},
    {"hard-argmax", Asks::score, Asking::decoder,
     [](const Plan& p) -> Made { return made<HardArgmaxAttention>(p.score()); }},
    {"hard-sample", Asks::score, Asking::decoder,
     [](const Plan& p) -> Made { return made<HardSampleAttention>(p.score()); }},
    {"forward", Asks::score, Asking::decoder,
     [](const Plan& p) -> Made { return made<ForwardAttention>(p.score(), p.config.slack); }},
    {"window", Asks::nothing, Asking::decoder,
     [](const Plan& p) -> Made {
       return made<WindowAttention>(p.scope, p.sizes.state, p.config.gaussians);
     }},
    {"static", Asks::score, Asking::sentence,
     [](const Plan& p) -> Made { return made<StaticAttention>(p.score(), p.sizes.summary); }},
};

template <class Lines>
auto line_of(const Lines& lines, const std::string& name) {
  return std::ranges::find_if(lines, [&](const auto& line) { return name == line.name; });
}

template <class Lines>
std::vector<std::string> names_of(const Lines& lines) {
  std::vector<std::string> names;
  for (const auto& line : lines) names.push_back(line.name);
  return names;
}

// The query of a static attention is a sentence's summary, which has the size of the memory.
AttentionSizes asked_with(const KindLine& kind, AttentionSizes sizes) {
  if (kind.asking == Asking::sentence) sizes.state = sizes.memory;
  return sizes;
}

void check_score(Exit code, const std::string& score, const AttentionConfig& config,
                 const AttentionSizes& sizes) {
  if (score == "dot" || score == "scaled-dot")
    check(sizes.state == sizes.memory, code, "model.score: ", score,
          " multiplies states with annotations of the same size, but a state has ", sizes.state,
          " numbers and an annotation ", sizes.memory,
          "; choose general, concat or additive, or make the sizes equal");
  if (score != "location") return;
  const int64_t positions = config.location_length ? config.location_length : sizes.max_length;
  check(positions > 0, code,
        "model.location_length: the score location needs the number of positions it can tell ",
        "apart; set it, or model.max_length");
  if (config.kind == "local-m" || config.kind == "local-p")
    check(positions >= sizes.max_length, code, "model.location_length: ", positions,
          " positions are fewer than model.max_length, ", sizes.max_length, "; with attention ",
          config.kind, " a window could then lie beyond them and be empty: use 0 or at least ",
          sizes.max_length);
}

}  // namespace

void AttentionConfig::describe_choice(Settings& s) {
  std::vector<std::string> scores = names_of(kScores);
  scores.insert(scores.begin(), "auto");
  s.choice("attention", kind, names_of(kKinds),
           "where the decoder looks; none: the last state only");
  s.choice("score", score, scores,
           "how state and word are compared; auto: additive, none for window");
  s.field("attention_size", inner,
          "width inside the scores additive and concat and inside local-p; 0: the decoder's size")
      .between(0, 65536);
}

void AttentionConfig::describe_details(Settings& s) {
  s.field("window", window, "local-m, local-p: words looked at on each side of the middle (D)")
      .between(1, 65536);
  s.field("slack", slack, "forward: words that the focus may go back").between(0, 65536);
  s.field("gaussians", gaussians, "window: Gaussians that are added up (K)").between(1, 1024);
  s.field("location_length", location_length,
          "location: positions it can tell apart; 0: max_length")
      .between(0, 65536);
  s.field("reward_weight", lambda_r,
          "hard-sample: weight of the reward of a choice; 0.1 to 0.3 learn best")
      .at_least(0);
  s.field("reward_discount", reward_discount,
          "hard-sample: what a word's share in the reward of a choice one word before is worth; 1: "
          "the exact gradient on average, 0: the own word alone, which is less noisy")
      .between(0, 1);
  s.field("entropy_weight", lambda_e, "hard-sample: weight of the entropy, which keeps it trying")
      .at_least(0);
  s.field("baseline_decay", baseline_decay,
          "hard-sample: share of the old mean reward in the new one")
      .between(0, 1);
}

void AttentionConfig::check(Exit code, const AttentionSizes& sizes) const {
  const auto* line = line_of(kKinds, kind);
  fovea::check(line != std::end(kKinds), code, "model.attention: there is no '", kind, "'");
  fovea::check(score == "auto" || line_of(kScores, score) != std::end(kScores), code,
               "model.score: there is no '", score, "'");
  fovea::check(line->asks == Asks::score || score == "auto", code, "model.score: attention ", kind,
               " compares nothing and has no score, found ", score, "; leave model.score away");
  fovea::check(window >= 1, code, "model.window: ", window, " words; at least 1 is needed");
  fovea::check(kind != "static" || sizes.summary == Summary::last_word || sizes.memory % 2 == 0,
               code, "model.attention: static sums a sentence up by the two halves of its ",
               "annotations, found an odd size of ", sizes.memory);
  if (line->asks == Asks::score) check_score(code, score_name(), *this, asked_with(*line, sizes));
}

std::unique_ptr<Attention> make_attention(Scope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes) {
  const auto* line = line_of(kKinds, config.kind);
  assert(line != std::end(kKinds));
  return line->make({scope, config, asked_with(*line, sizes)});
}

std::unique_ptr<Score> make_score(Scope scope, const AttentionConfig& config,
                                  const AttentionSizes& sizes) {
  const auto* line = line_of(kScores, config.score_name());
  assert(line != std::end(kScores));
  return line->make({scope, config, sizes});
}

}  // namespace fovea
