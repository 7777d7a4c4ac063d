#include "attention/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

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

// The arguments of the factories below.
struct BuildContext {
  ParameterScope scope;
  const AttentionConfig& config;
  AttentionSizes sizes;

  int64_t inner() const { return config.inner ? config.inner : sizes.state; }
  int64_t positions() const {
    return config.location_length ? config.location_length : sizes.max_length;
  }
  std::unique_ptr<ScoreFunction> score() const { return make_score(scope, config, sizes); }
};

template <class Made, class... Args>
auto make(Args&&... args) {
  return std::make_unique<Made>(std::forward<Args>(args)...);
}

// An entry of the table of scores: a new score needs one entry.
struct ScoreEntry {
  const char* name;
  std::unique_ptr<ScoreFunction> (*make)(const BuildContext&);
};
using ScorePtr = std::unique_ptr<ScoreFunction>;
const ScoreEntry kScores[] = {
    {"dot", [](const BuildContext&) -> ScorePtr { return make<DotScore>(); }},
    {"scaled-dot", [](const BuildContext&) -> ScorePtr { return make<ScaledDotScore>(); }},
    {"general",
     [](const BuildContext& p) -> ScorePtr {
       return make<GeneralScore>(p.scope, p.sizes.state, p.sizes.memory);
     }},
    {"concat",
     [](const BuildContext& p) -> ScorePtr {
       return make<ConcatScore>(p.scope,
                                ConcatScore::Sizes{p.sizes.state, p.sizes.memory, p.inner()});
     }},
    {"additive",
     [](const BuildContext& p) -> ScorePtr {
       return make<AdditiveScore>(p.scope,
                                  AdditiveScore::Sizes{p.sizes.state, p.sizes.memory, p.inner()});
     }},
    {"location",
     [](const BuildContext& p) -> ScorePtr {
       return make<LocationScore>(p.scope, p.sizes.state, p.positions());
     }},
};

enum class Scoring { score, none };
enum class QuerySource { decoder, sentence };  // whose state is compared with the words

// An entry of the table of mechanisms: a new mechanism needs one entry.
struct KindEntry {
  const char* name;
  Scoring scoring;
  QuerySource query;
  std::unique_ptr<Attention> (*make)(const BuildContext&);
};
using AttentionPtr = std::unique_ptr<Attention>;
const KindEntry kKinds[] = {
    {"none", Scoring::none, QuerySource::decoder,
     [](const BuildContext&) -> AttentionPtr { return nullptr; }},
    {"global", Scoring::score, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr { return make<GlobalAttention>(p.score()); }},
    {"local-m", Scoring::score, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr {
       return make<LocalMonotonicAttention>(p.score(), p.config.window);
     }},
    {"local-p", Scoring::score, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr {
       return make<LocalPredictiveAttention>(
           p.scope, p.score(),
           LocalPredictiveAttention::Sizes{p.sizes.state, p.inner(), p.config.window});
     }},
    {"hard-argmax", Scoring::score, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr { return make<HardArgmaxAttention>(p.score()); }},
    {"hard-sample", Scoring::score, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr { return make<HardSampleAttention>(p.score()); }},
    {"forward", Scoring::score, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr {
       return make<ForwardAttention>(p.score(), p.config.slack);
     }},
    {"window", Scoring::none, QuerySource::decoder,
     [](const BuildContext& p) -> AttentionPtr {
       return make<WindowAttention>(p.scope, p.sizes.state, p.config.gaussians);
     }},
    {"static", Scoring::score, QuerySource::sentence,
     [](const BuildContext& p) -> AttentionPtr {
       return make<StaticAttention>(p.score(), p.sizes.summary);
     }},
};

template <class Table>
auto find_entry(const Table& table, const std::string& name) {
  return std::ranges::find_if(table, [&](const auto& entry) { return name == entry.name; });
}

template <class Table>
std::vector<std::string> names_of(const Table& table) {
  std::vector<std::string> names;
  for (const auto& entry : table) names.push_back(entry.name);
  return names;
}

// The query of static attention is the summary of a sentence, which has the size of the memory.
AttentionSizes sizes_of_query(const KindEntry& kind, AttentionSizes sizes) {
  if (kind.query == QuerySource::sentence) sizes.state = sizes.memory;
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

void AttentionConfig::describe_choice(Settings& s) {
  std::vector<std::string> scores = names_of(kScores);
  scores.insert(scores.begin(), "auto");
  s.choice("attention", kind, names_of(kKinds),
           "attention mechanism; none: the decoder sees only the last encoder state");
  s.choice("score", score, scores,
           "score that compares state and word; auto: additive, no score for window");
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
  const auto* entry = find_entry(kKinds, kind);
  fovea::check(entry != std::end(kKinds), code, "model.attention: there is no '", kind,
               "'; use one of ", fmt::format("{}", fmt::join(names_of(kKinds), ", ")));
  fovea::check(score == "auto" || find_entry(kScores, score) != std::end(kScores), code,
               "model.score: there is no '", score, "'; use auto or one of ",
               fmt::format("{}", fmt::join(names_of(kScores), ", ")));
  fovea::check(entry->scoring == Scoring::score || score == "auto", code, "model.score: attention ",
               kind, " compares nothing and has no score, found ", score, "; remove model.score");
  fovea::check(window >= 1, code, "model.window: ", window, " words; at least 1 is needed");
  fovea::check(
      kind != "static" || sizes.summary == SummaryStates::last_word || sizes.memory % 2 == 0, code,
      "model.attention: static builds its query from the two halves of an annotation, which needs ",
      "an even size, found an odd size of ", sizes.memory, "; change model.encoder_size");
  if (entry->scoring == Scoring::score)
    check_score(code, score_name(), *this, sizes_of_query(*entry, sizes));
}

std::unique_ptr<Attention> make_attention(ParameterScope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes) {
  const auto* entry = find_entry(kKinds, config.kind);
  assert(entry != std::end(kKinds));
  return entry->make({scope, config, sizes_of_query(*entry, sizes)});
}

std::unique_ptr<ScoreFunction> make_score(ParameterScope scope, const AttentionConfig& config,
                                          const AttentionSizes& sizes) {
  const auto* entry = find_entry(kScores, config.score_name());
  assert(entry != std::end(kScores));
  return entry->make({scope, config, sizes});
}

}  // namespace fovea
