#include <algorithm>
#include <numeric>

#include "attention/attention_intervention.h"
#include "models/recurrent_model.h"
#include "ops/matmul.h"

// Decoding of recurrent models one word at a time, and their attention maps.
namespace fovea {
namespace {

struct State : DecoderState {
  SourceMemory memory;
  DecoderRows rows;
  std::vector<int32_t> sentence;  // for each row, the index of its source sentence
};

// The results of one attention step, copied to the host.
struct StepValues {
  std::vector<double> weights;
  std::vector<std::vector<double>> shown;  // the values of each series that pictures show
  int64_t rows, columns;

  StepValues(const AttentionResult& step, const Attention& attend,
             const std::vector<NamedSeries>& series)
      : weights(attend.drawn_weights(step.weights).values()), rows(step.weights.rows()),
        columns(step.weights.cols()) {
    for (const NamedSeries& each : series)
      shown.push_back(each.of_rows() ? step.shown[each.name].values() : std::vector<double>{});
  }
};

void append(std::vector<float>& to, const std::vector<double>& from, int64_t first, int64_t count) {
  for (int64_t k = first; k < first + count; ++k)
    to.push_back(static_cast<float>(from[static_cast<size_t>(k)]));
}

// Appends row i of the step to the map. A row of the step has one column per word of the longest
// sentence of the batch. The map has only the columns of its own sentence.
void add_row(AttentionMap& map, const StepValues& step, int64_t i) {
  append(map.weights, step.weights, i * step.columns, map.cols);
  for (size_t k = 0; k < map.series.size(); ++k) {
    const int64_t wide = std::ssize(step.shown[k]) / step.rows;
    const bool of_words = map.series[k].kind == NamedSeries::Kind::distribution;
    append(map.series[k].values, step.shown[k], i * wide, of_words ? map.cols : wide);
  }
  ++map.rows;
}

// Returns, for each source word, the context vector if this word had weight 1. For most mechanisms,
// it is h_j. REQUIRES: the memory has one sentence.
std::vector<DoubleRow> values_of_words(const Attention& attend, const SourceMemory& memory) {
  const int64_t n = memory.h.rows();
  std::vector<double> one_per_row(static_cast<size_t>(n * n), 0);
  for (int64_t j = 0; j < n; ++j) one_per_row[static_cast<size_t>(j * n + j)] = 1;
  const std::vector<int32_t> sentence(static_cast<size_t>(n), 0);
  const Device device = memory.h.device();
  return rows_of(attend.context(Tensor::of({n, n}, one_per_row, memory.h.type(), device), memory,
                                {memory.sentences, Tensor::of(sentence, device)}));
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
  const std::vector<NamedSeries> series = attend->series();
  for (int64_t t = 0; t < order.times(); ++t) {
    const StepValues step(decoded.attended[static_cast<size_t>(t)], *attend, series);
    for (int64_t i = 0; i < order.alive(t); ++i) {
      const auto b = static_cast<size_t>(order.order[static_cast<size_t>(i)]);
      if (t == 0)
        maps[b].push_back({"cross",
                           0,
                           0,
                           0,
                           source.offsets[b + 1] - source.offsets[b],
                           {},
                           config_.attention.kind,
                           series});
      add_row(maps[b].front(), step, i);
    }
  }
  return maps;
}

RecurrentModel::RecurrentModel(const RecurrentModel& other, std::unique_ptr<Attention> attention)
    : Model(other.store_.type(), other.store_.device(), other.shape_), config_(other.config_),
      E_source(other.E_source), E_target(other.E_target), encoder(other.encoder), W_s(other.W_s),
      decoder(other.decoder), C(other.C), attend(std::move(attention)), W_r(other.W_r),
      W_o(other.W_o), b_o(other.b_o), baseline(other.baseline) {}

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
  const bool of_decoder =
      find_mechanism(config_.attention.kind)->query == AttentionMechanism::Query::decoder;
  if (config_.decoder == DecoderForm::bahdanau && of_decoder)
    steps.all.front().formula = "s_t: the decoder state before step t, s_{t−1} of Bahdanau et al.";
  const ContextNames names = attend->context_names();
  const std::string weighted = names.weight + " " + names.value,
                    sum = "c_t = Σ_j " + weighted + ": the context vector, a weighted sum of " +
                          names.values;
  add_weighted_sum(steps, result.weights.values(), values_of_words(*attend, state.memory),
                   {names.value.c_str(), weighted.c_str(), "c_t", sum.c_str()});
  return steps;
}

}  // namespace fovea
