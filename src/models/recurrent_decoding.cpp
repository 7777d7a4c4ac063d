#include <algorithm>
#include <numeric>

#include "attention/attention_intervention.h"
#include "attention/window.h"
#include "models/recurrent_model.h"
#include "ops/matmul.h"

// Decoding of recurrent models one word at a time, and their attention maps.
namespace fovea {
namespace {

struct State : DecoderState {
  SourceMemory memory;
  DecoderRows rows;
  std::vector<int32_t> sentence;  // the source sentence of each row
};

// The result of one attention step, as numbers on the host.
struct StepValues {
  std::vector<double> weights, soft, position, kappa;
  int64_t columns, gaussians;

  StepValues(const AttentionResult& step, const AttentionConfig& how)
      : weights((how.kind == "window" ? drawn_weights(step.weights) : step.weights).values()),
        soft(values_of(step.soft)), position(values_of(step.position)),
        kappa(values_of(step.now.kappa)), columns(step.weights.cols()),
        gaussians(step.now.kappa ? step.now.kappa.cols() : 0) {}

 private:
  static std::vector<double> values_of(const Tensor& x) {
    return x ? x.values() : std::vector<double>{};
  }
};

AttentionMap empty_map(const ModelConfig& config, int64_t source_words) {
  AttentionMap map{"cross", 0, 0, 0, source_words, {}};
  map.mechanism = config.attention.kind;
  const bool local = map.mechanism == "local-m" || map.mechanism == "local-p";
  if (local) map.window = config.attention.window;
  if (map.mechanism == "local-p") map.sigma = static_cast<double>(map.window) / 2;  // σ = D/2
  return map;
}

void append(std::vector<float>& to, const std::vector<double>& from, int64_t first, int64_t count) {
  for (int64_t k = first; k < first + count; ++k)
    to.push_back(static_cast<float>(from[static_cast<size_t>(k)]));
}

// The first column that the next row may attend to: the focus of the last row minus `slack`.
int32_t next_frontier(const AttentionMap& map, int64_t slack) {
  if (map.rows == 0) return 0;
  const auto last = map.weights.end() - map.cols;
  const int64_t focus = std::max_element(last, map.weights.end()) - last;
  return static_cast<int32_t>(std::max<int64_t>(0, focus - slack));
}

// Appends row i of the step to the map.
void add_row(AttentionMap& map, const StepValues& step, int64_t i, const AttentionConfig& how) {
  if (how.kind == "forward") map.frontier.push_back(next_frontier(map, how.slack));
  append(map.weights, step.weights, i * step.columns, map.cols);
  if (how.kind.starts_with("hard")) append(map.soft, step.soft, i * step.columns, map.cols);
  if (!step.position.empty()) append(map.position, step.position, i, 1);
  if (!step.kappa.empty()) append(map.kappa, step.kappa, i * step.gaussians, step.gaussians);
  ++map.rows;
}

}  // namespace

std::unique_ptr<DecoderState> RecurrentModel::start(const TokenBatch& source) const {
  auto state = std::make_unique<State>();
  const EncoderOutput encoded = encode(source);
  state->memory = encoded.memory;
  state->sentence.resize(static_cast<size_t>(source.sentences()));
  std::iota(state->sentence.begin(), state->sentence.end(), 0);
  state->rows = first(encoded, Tensor::of(state->sentence, store_.device()));
  return state;
}

Tensor RecurrentModel::step(DecoderState& decoder_state, std::span<const int32_t> words) const {
  auto& state = static_cast<State&>(decoder_state);
  const Tensor y = embed_words(E_target, Tensor::of(words, store_.device()));
  const Tensor x = linear(y, decoder[0].W, decoder[0].b);
  StepResult step =
      advance(x, 0, state.rows, state.memory, Tensor::of(state.sentence, store_.device()));
  const Tensor out = readout(step.s, y, step.c);
  if (state.rows.fed) step.rows.fed = out;
  state.rows = std::move(step.rows);
  return linear(out, W_o, b_o);
}

void RecurrentModel::reorder(DecoderState& decoder_state, std::span<const int32_t> parents) const {
  auto& state = static_cast<State&>(decoder_state);
  const Tensor index = Tensor::of(parents, store_.device());
  DecoderRows& rows = state.rows;
  for (Tensor& s : rows.states) s = rows_at(s, index);
  if (rows.fed) rows.fed = rows_at(rows.fed, index);
  rows.attention = chosen_rows(rows.attention, index);
  std::vector<int32_t> sentence;
  for (const int32_t parent : parents)
    sentence.push_back(state.sentence[static_cast<size_t>(parent)]);
  state.sentence = std::move(sentence);
}

std::vector<std::vector<AttentionMap>> RecurrentModel::attention(
    const TokenBatch& source, const TokenBatch& target_in) const {
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  if (!attend) return maps;
  const Target target = Target::of(target_in, store_.device());
  const DecoderOutput decoded = decode(encode(source), target);
  const TimeMajor& order = target.order;
  for (int64_t t = 0; t < order.times(); ++t) {
    const StepValues step(decoded.attended[static_cast<size_t>(t)], config_.attention);
    for (int64_t i = 0; i < order.alive(t); ++i) {
      const auto b = static_cast<size_t>(order.order[static_cast<size_t>(i)]);
      if (t == 0) maps[b].push_back(empty_map(config_, source.offsets[b + 1] - source.offsets[b]));
      add_row(maps[b].front(), step, i, config_.attention);
    }
  }
  return maps;
}

RecurrentModel::RecurrentModel(const RecurrentModel& other, std::unique_ptr<Attention> attention)
    : Model(other.store_.type(), other.store_.device(), {other.target_words(), other.max_length()}),
      config_(other.config_), E_source(other.E_source), E_target(other.E_target),
      encoder(other.encoder), W_s(other.W_s), decoder(other.decoder), C(other.C),
      attend(std::move(attention)), W_r(other.W_r), W_o(other.W_o), b_o(other.b_o),
      baseline(other.baseline) {}

std::unique_ptr<Model> RecurrentModel::with_intervention(const WhatIf& intervention) const {
  check(attend != nullptr, ExitCode::usage,
        "this model has no attention, so it does not support interventions");
  AttentionWithIntervention::Intervention own;
  own.silent = intervention.silences("cross", 0, 0);
  for (const WhatIf::Row& row : intervention.forced)
    if (row.concerns(0, 0)) own.forced.push_back({row.step, row.weights});
  own.masked = intervention.masked;
  return std::unique_ptr<Model>(new RecurrentModel(
      *this, std::make_unique<AttentionWithIntervention>(*attend, std::move(own))));
}

ComputationSteps RecurrentModel::explain(const TokenBatch& source, const TokenBatch& target_in,
                                         const AttentionRow& row) const {
  auto started = start(source);
  auto& state = static_cast<State&>(*started);
  const auto at = static_cast<size_t>(row.row);
  for (size_t t = 0; t < at; ++t) step(state, target_in.ids.subspan(t, 1));
  const AttentionState previous = state.rows.attention;
  if (config_.decoder == DecoderForm::luong)
    step(state, target_in.ids.subspan(at, 1));  // α from s_t
  const AttentionQuery query{decoder.back().h(state.rows.states.back()),
                             Tensor::of(state.sentence, store_.device())};
  const AttentionResult result = attend->attend(query, state.memory, previous);
  ComputationSteps steps;
  attend->explain(query, state.memory, previous, result, steps);
  const bool window = config_.attention.kind == "window";  // its weights are named φ
  if (config_.decoder == DecoderForm::bahdanau && config_.attention.kind != "static")
    steps.all.front().formula = "s_t: the decoder state before step t, s_{t−1} of Bahdanau et al.";
  add_weighted_sum(
      steps, result.weights.values(), rows_of(state.memory.h),
      {"h_j", window ? "φ_tj h_j" : "α_tj h_j", "c_t",
       window
           ? "c_t = Σ_j φ_tj h_j: the context vector, a weighted sum of the encoder states h_j"
           : "c_t = Σ_j α_tj h_j: the context vector, a weighted sum of the encoder states h_j"});
  return steps;
}

}  // namespace fovea
