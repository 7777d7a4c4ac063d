#include <algorithm>
#include <numeric>

#include "models/recurrent.h"
#include "ops/matmul.h"

// Recurrent models one word at a time, and what they attend to.
namespace fovea {
namespace {

struct State : DecoderState {
  Memory memory;
  DecoderRows rows;
  std::vector<int32_t> sentence;  // per row: the source it translates
};

}  // namespace

std::unique_ptr<DecoderState> RecurrentModel::start(const Tokens& source) const {
  auto state = std::make_unique<State>();
  const Encoded encoded = encode(source);
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
  Stepped step = advance(x, state.rows, state.memory, Tensor::of(state.sentence, store_.device()));
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
  rows.before = chosen_rows(rows.before, index);
  std::vector<int32_t> sentence;
  for (const int32_t parent : parents)
    sentence.push_back(state.sentence[static_cast<size_t>(parent)]);
  state.sentence = std::move(sentence);
}

std::vector<std::vector<AttentionMap>> RecurrentModel::attention(const Tokens& source,
                                                                 const Tokens& target_in) const {
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  if (!attend) return maps;
  const TimeMajor order = TimeMajor::of(target_in.offsets, store_.device());
  std::vector<int32_t> ids;
  for (const double p : order.from.values()) ids.push_back(target_in.ids[static_cast<size_t>(p)]);
  const Decoded decoded = decode(encode(source), {Tensor::of(ids, store_.device()), order,
                                                  Tensor::of(order.order, store_.device())});
  for (int64_t t = 0; t < order.times(); ++t) {
    const Attended& step = decoded.attended[static_cast<size_t>(t)];
    const std::vector<double> weights = step.weights.values();
    for (int64_t i = 0; i < order.alive(t); ++i) {
      const auto b = static_cast<size_t>(order.order[static_cast<size_t>(i)]);
      const int64_t S = source.offsets[b + 1] - source.offsets[b];
      if (t == 0) maps[b].push_back({"cross", 0, 0, 0, S, {}});
      AttentionMap& map = maps[b].front();
      const auto row = weights.begin() + i * step.weights.cols();
      // Graves' weights may have any sum; they are drawn normalised.
      const double sum =
          config_.attention.kind == "window" ? std::accumulate(row, row + S, 0.0) : 1;
      std::transform(row, row + S, std::back_inserter(map.weights),
                     [&](double w) { return static_cast<float>(sum > 0 ? w / sum : 0); });
      ++map.rows;
    }
  }
  return maps;
}

}  // namespace fovea
