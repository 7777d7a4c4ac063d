#include <algorithm>
#include <numeric>

#include "attention/attentive_reader.h"
#include "attention/forward.h"
#include "attention/hard_sample.h"
#include "attention/window.h"
#include "goldens/attention_steps.h"

namespace fovea::goldens {
namespace {

const std::string kSource = "in.src_mask", kTarget = "in.tgt_mask";

const char* const kScores[] = {"dot", "scaled_dot", "general", "concat", "additive", "location"};

// The score name that follows the kind in the case's name, as in recipes.
std::string score_of(const Case& c, const std::string& kind) {
  if (c.name() == "attn_global_location_long") return "location";
  if (c.name() == "attn_forward_exhausted") return "general";
  return recipe_name(c.name().substr(kind.size() + 1));
}

// 1 where x is not 0, otherwise 0.
std::vector<double> inside(const Tensor& x) {
  std::vector<double> in = x.values();
  for (double& v : in) v = v != 0;
  return in;
}
Tensor as_tensor(const Tensor& like, const std::vector<double>& values) {
  return Tensor::of(like.shape(), values, like.type(), like.device());
}

void score_case(Case& c) {
  const AttentionSizes sizes = sizes_of(c);
  ParameterStore store(c.type(), c.device());
  const auto score =
      make_score(ParameterScope{store, ""}, config_of(c, "global", score_of(c, "score")), sizes);
  assign_all(c, store);
  const Tensor h = c.packed("in.h", kSource), s = c.packed("in.s", kTarget);
  Tape tape;
  const SourceMemory memory{h, score->keys(h), c.packing(kSource), score->query_weights()};
  const Tensor e = (*score)(s, memory, {memory.sentences, owners(c, kTarget)});
  c.expect_kept("out.main", kTarget, e);
  c.backward(tape, e, kTarget);
  expect_gradient(c, "grad.in.h", kSource, h);
  expect_gradient(c, "grad.in.s", kTarget, s);
  c.expect_gradients();
}

// Runs the steps of a case, compares the results that all mechanisms have, and runs the backward
// pass.
template <class Compare>
void steps_case(Case& c, const std::string& kind, const std::string& score, Compare compare) {
  Tape tape;
  Steps steps(c, kind, score);
  steps.run();
  const Tensor y = steps.joined(&AttentionResult::context);
  c.expect_kept("out.main", kTarget, y);
  c.expect_kept("out.weights", kTarget, steps.joined(&AttentionResult::weights));
  if (c.has("out.scores")) c.expect_kept("out.scores", kTarget, steps.scores());
  compare(steps);
  c.backward(tape, y, kTarget);
  steps.expect_gradients();
}

void global_case(Case& c) {
  steps_case(c, "global", score_of(c, "attn_global"), [](const Steps&) {});
}

void local_m_case(Case& c) {
  steps_case(c, "local-m", score_of(c, "attn_local_m"), [&](const Steps& steps) {
    const Tensor weights = steps.joined(&AttentionResult::weights);
    c.expect_kept("out.p", kTarget, steps.shown("p_t"));
    c.expect_kept("out.window", kTarget, as_tensor(weights, inside(weights)));
  });
}

void local_p_case(Case& c) {
  steps_case(c, "local-p", score_of(c, "attn_local_p"), [&](const Steps& steps) {
    const Tensor soft = steps.shown("near");
    c.expect_kept("out.p", kTarget, steps.shown("p_t"));
    c.expect_kept("out.softmax_in_window", kTarget, soft);
    c.expect_kept("out.window", kTarget, as_tensor(soft, inside(soft)));
  });
}

void hard_argmax_case(Case& c) {
  steps_case(c, "hard-argmax", score_of(c, "attn_hard_argmax"), [&](const Steps& steps) {
    std::vector<Tensor> k;
    for (size_t t = 0; t < steps.all().size(); ++t)
      k.push_back(
          as_tensor(Tensor({steps.ragged_queries(t).queries(), 1}, c.type(), c.device()),
                    argmax(steps.all()[t].weights, full_range(steps.ragged_queries(t))).values()));
    c.expect_kept("out.argmax", kTarget, steps.joined(k));
    c.expect_kept("out.soft_weights", kTarget, steps.shown("soft"));
  });
}

void hard_sample_case(Case& c) {
  Tape tape;
  Steps steps(c, "hard-sample", score_of(c, "attn_hard_sample"));
  const RaggedQueries queries{steps.memory().sentences, owners(c, kTarget)};
  const AttentionResult soft = steps.attention<HardSampleAttention>().attend(
      {steps.s(), queries.sentence}, steps.memory(), {});
  std::vector<int32_t> k;
  for (const double at : c.kept("in.sample", kTarget)) k.push_back(static_cast<int32_t>(at));
  const AttentionResult chosen =
      HardSampleAttention::at(c.of(k), soft.shown["soft"], steps.memory(), queries, {});
  c.expect_kept("out.scores", kTarget, steps.scores());
  c.expect_kept("out.soft_weights", kTarget, chosen.shown["soft"]);
  c.expect_kept("out.weights", kTarget, chosen.weights);
  c.expect_kept("out.context", kTarget, chosen.context);
  c.expect_kept("out.log_prob", kTarget, chosen.log_choice);
  c.expect_kept("out.entropy", kTarget, chosen.entropy);

  const std::vector<double>& rewards = c.values("in.reward");
  const double B = static_cast<double>(rewards.size());
  std::vector<double> by_row;
  for (const double b : queries.sentence.values())
    by_row.push_back(rewards[static_cast<size_t>(b)]);
  const Tensor R = c.of(chosen.log_choice.shape(), by_row);
  auto loss = [&](double lambda_r, double lambda_e) {
    return surrogate_loss(chosen.log_choice, chosen.entropy, R,
                          {lambda_r, lambda_e, c.number("in.baseline")},
                          static_cast<int64_t>(rewards.size()));
  };
  const double lambda_r = c.number("in.lambda_r"), lambda_e = c.number("in.lambda_e");
  c.expect("out.reinforce_term", loss(lambda_r, 0));
  c.expect("out.entropy_term", loss(0, lambda_e));
  const double mean = std::accumulate(rewards.begin(), rewards.end(), 0.0) / B;
  c.expect("out.baseline_next", std::vector{next_baseline(c.number("in.baseline"), mean,
                                                          c.number("in.baseline_decay"))});
  const Tensor main = loss(lambda_r, lambda_e);
  c.expect("out.main", main);
  c.backward(tape, main);
  steps.expect_gradients();
}

void forward_case(Case& c) {
  steps_case(c, "forward", score_of(c, "attn_forward"), [&](const Steps& steps) {
    const auto& forward = steps.attention<ForwardAttention>();
    std::vector<Tensor> allowed, exhausted;
    for (size_t t = 0; t < steps.all().size(); ++t) {
      const RaggedQueries queries = steps.ragged_queries(t);
      const ColumnRanges words = full_range(queries);
      const Tensor none =
          Tensor::zeros({queries.queries(), queries.columns()}, c.type(), c.device());
      const ColumnRanges m = t ? forward.allowed(steps.before()[t], words) : words;
      allowed.push_back(uncovered(none, m));
      const Tensor left = t ? forward.left(steps.before()[t], words) : allowed.back();
      const std::vector<double> rest = left.values();
      const std::ptrdiff_t width = left.cols();
      std::vector<double> nothing;
      for (auto row = rest.begin(); row < rest.end(); row += width)
        nothing.push_back(*std::max_element(row, row + width) <= 1e-6);
      exhausted.push_back(c.of({left.rows(), 1}, nothing));
    }
    c.expect_kept("out.allowed", kTarget, steps.joined(allowed));
    c.expect_kept("out.nothing_left", kTarget, steps.joined(exhausted));
  });
}

void window_case(Case& c) {
  steps_case(c, "window", "auto", [&](const Steps& steps) {
    std::vector<Tensor> kappa;
    for (const AttentionResult& at : steps.all()) kappa.push_back(at.now["kappa"]);
    c.expect_kept("out.kappa", kTarget, steps.joined(kappa));
    c.expect_kept(
        "out.drawn_weights", kTarget,
        steps.attention<WindowAttention>().drawn_weights(steps.joined(&AttentionResult::weights)));
  });
}

void static_case(Case& c) {
  ParameterStore store(c.type(), c.device());
  const auto attention = make_attention(
      ParameterScope{store, ""}, config_of(c, "static", score_of(c, "attn_static")), sizes_of(c));
  assign_all(c, store);
  const Tensor h = c.packed("in.h", kSource);
  const SentenceOffsets source = c.packing(kSource);
  std::vector<int32_t> each(static_cast<size_t>(source.sentences));
  std::iota(each.begin(), each.end(), 0);
  const AttentionQuery query{{}, c.of(each)};
  Tape tape;
  const SourceMemory memory = attention->remember(h, source);
  const AttentionResult first = attention->attend(query, memory, {});
  const AttentionResult second = attention->attend(query, memory, first.now);
  const ScoreFunction& score = dynamic_cast<const ScoredAttention&>(*attention).score();
  c.expect("out.u", memory.summary);
  c.expect("out.scores", score(memory.summary, memory, {source, query.sentence}));
  c.expect("out.weights", first.weights);
  c.expect("out.main", first.context);
  c.expect("out.main", second.context);
  c.backward(tape, second.context);
  expect_gradient(c, "grad.in.h", kSource, h);
  c.expect_gradients();
}

void reader_case(Case& c) {
  ParameterStore store(c.type(), c.device());
  const ReaderAttention read(ParameterScope{store, ""},
                             {c.shape("in.h").cols(), c.shape("in.u").cols(),
                              c.shape("param.w_ms")[0], c.shape("param.W_rg")[0]});
  assign_all(c, store);
  const Tensor h = c.packed("in.h", kSource), u = c.tracked("in.u");
  Tape tape;
  const ReaderAttention::Read found = read(h, c.packing(kSource), u);
  c.expect("out.scores", found.scores);
  c.expect("out.weights", found.weights);
  c.expect("out.r", found.r);
  c.expect("out.main", found.g);
  c.backward(tape, found.g);
  expect_gradient(c, "grad.in.h", kSource, h);
  c.expect("grad.in.u", u.grad());
  c.expect_gradients();
}

}  // namespace

void add_attention_cases(std::map<std::string, Run>& cases) {
  for (const std::string score : kScores) {
    cases["score_" + score] = score_case;
    cases["attn_global_" + score] = global_case;
    cases["attn_local_m_" + score] = local_m_case;
    cases["attn_local_p_" + score] = local_p_case;
    cases["attn_hard_argmax_" + score] = hard_argmax_case;
    cases["attn_hard_sample_" + score] = hard_sample_case;
    cases["attn_forward_" + score] = forward_case;
    cases["attn_static_" + score] = static_case;
  }
  cases["attn_global_location_long"] = global_case;
  cases["attn_forward_exhausted"] = forward_case;
  cases["attn_window"] = window_case;
  cases["attn_static_reader"] = reader_case;
}

}  // namespace fovea::goldens
