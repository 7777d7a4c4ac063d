#include <algorithm>

#include "models/transformer.h"
#include "ops/embedding.h"
#include "ops/shape.h"
#include "tensor/tape.h"

// The Transformer one word at a time: keys and values of earlier words are remembered, those of
// the source are computed once per sentence.
namespace fovea {
namespace {

// Note [Remembered rows]
// Keys and values of the words so far stand in one growing matrix per layer. A table gives for
// every live row the place of each of its words. Search reorders the table; keys and values are
// never copied per beam. When a matrix is full, it moves on without what search has dropped.
struct State : DecoderState {
  std::vector<Tensor> source_kv;  // per layer [source tokens, 2D]
  std::vector<Tensor> kv;         // per layer [capacity, 2D], the first `used` rows are filled
  int64_t used = 0, steps = 0, rows = 0;
  std::vector<std::vector<int32_t>> words;  // per row: the places of its words
  std::vector<int32_t> sentence;            // per row
  std::vector<int32_t> source_offsets;
};

// index and lengths for one row per entry of `places`.
void tabulate(const std::vector<std::vector<int32_t>>& places, Device device, Remembered& to) {
  size_t width = 1;
  for (const auto& row : places) width = std::max(width, row.size());
  std::vector<int32_t> index(places.size() * width, 0), lengths;
  for (size_t r = 0; r < places.size(); ++r) {
    std::ranges::copy(places[r], index.begin() + static_cast<std::ptrdiff_t>(r * width));
    lengths.push_back(static_cast<int32_t>(places[r].size()));
  }
  to.index = Tensor::of(index, device)
                 .view({static_cast<int64_t>(places.size()), static_cast<int64_t>(width)});
  to.lengths = Tensor::of(lengths, device);
}

Remembered source_table(const State& s, Device device) {
  std::vector<std::vector<int32_t>> places(static_cast<size_t>(s.rows));
  for (size_t r = 0; r < places.size(); ++r) {
    const auto b = static_cast<size_t>(s.sentence[r]);
    for (int32_t u = s.source_offsets[b]; u < s.source_offsets[b + 1]; ++u) places[r].push_back(u);
  }
  Remembered table;
  tabulate(places, device, table);
  return table;
}

// A step reads all that is remembered; moving it once in eight steps costs little beside that.
constexpr int64_t kStepsOfRoom = 8;

// Makes room for `rows` more rows. What no live row refers to any more is left behind.
void make_room(State& s, int64_t rows) {
  if (s.kv[0] && s.used + rows <= s.kv[0].size(0)) return;
  std::vector<int32_t> moved_to(static_cast<size_t>(s.used), -1), kept;
  for (auto& words : s.words)
    for (int32_t& word : words) {
      int32_t& to = moved_to[static_cast<size_t>(word)];
      if (to < 0) {
        to = static_cast<int32_t>(kept.size());
        kept.push_back(word);
      }
      word = to;
    }
  s.used = static_cast<int64_t>(kept.size());
  const Tensor& like = s.source_kv[0];
  const Tensor index = Tensor::of(kept, like.device());
  for (Tensor& kv : s.kv) {
    Tensor larger({s.used + kStepsOfRoom * rows, like.cols()}, like.type(), like.device());
    if (s.used > 0) copy_rows(kv, index, larger.window(0, s.used));
    kv = larger;
  }
}

}  // namespace

template <class Remember>
Tensor DecoderLayer::step(const Tensor& y, const Remembered& source,
                          const Remember& remember) const {
  const Tensor a = add_1(y, [&](const Tensor& h) {
    const Tensor qkv = attend_self.project(h);
    const Remembered self = remember(qkv);
    return attend_self.W_O(attend_remembered(columns(qkv, 0, h.cols()), self, attend_self.heads));
  });
  const Tensor b = add_2(a, [&](const Tensor& h) {
    const Tensor q = attend_source.queries(h);
    return attend_source.W_O(attend_remembered(q, source, attend_source.heads));
  });
  return add_3(b, feed_forward);
}

std::unique_ptr<DecoderState> Transformer::start(const Tokens& source) const {
  const Packing from = Packing::of(source.offsets, store_.device());
  const Tensor memory = encode(embed_source(source.ids, from), from);
  auto state = std::make_unique<State>();
  for (const DecoderLayer& layer : decoder_layers)
    state->source_kv.push_back(layer.attend_source.keys_and_values(memory));
  state->kv.resize(decoder_layers.size());
  state->rows = source.sentences();
  state->words.resize(static_cast<size_t>(state->rows));
  for (int32_t b = 0; b < state->rows; ++b) state->sentence.push_back(b);
  state->source_offsets.assign(source.offsets.begin(), source.offsets.end());
  return state;
}

Tensor Transformer::step(DecoderState& decoder_state, std::span<const int32_t> words) const {
  auto& s = static_cast<State&>(decoder_state);
  assert(static_cast<int64_t>(words.size()) == s.rows);
  make_room(s, s.rows);
  for (int64_t r = 0; r < s.rows; ++r)
    s.words[static_cast<size_t>(r)].push_back(static_cast<int32_t>(s.used + r));
  Remembered self, source = source_table(s, store_.device());
  tabulate(s.words, store_.device(), self);

  const int64_t at = std::min(s.steps, max_length());
  const std::vector<int32_t> place(words.size(), static_cast<int32_t>(at));
  Tensor y = embed_target(words, Tensor::of(place, store_.device()), at + 1);
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    source.kv = s.source_kv[i];
    y = decoder_layers[i].step(y, source, [&](const Tensor& qkv) {
      copy_columns(qkv, config_.size, s.kv[i].window(s.used, s.rows));
      self.kv = s.kv[i];
      return self;
    });
  }
  s.used += s.rows;
  ++s.steps;
  return logits(final_norms.empty() ? y : final_norms[1](y));
}

void Transformer::reorder(DecoderState& decoder_state, std::span<const int32_t> parents) const {
  auto& s = static_cast<State&>(decoder_state);
  std::vector<std::vector<int32_t>> words;
  std::vector<int32_t> sentence;
  for (const int32_t parent : parents) {
    words.push_back(s.words[static_cast<size_t>(parent)]);
    sentence.push_back(s.sentence[static_cast<size_t>(parent)]);
  }
  s.words = std::move(words);
  s.sentence = std::move(sentence);
  s.rows = static_cast<int64_t>(parents.size());
}

namespace {

// Cuts the weights of a packed batch into one map per head and adds them to each sentence's list.
void add_maps(const char* kind, int64_t layer, int64_t heads, const Tensor& weights,
              const Tokens& rows, const Tokens& cols,
              std::vector<std::vector<AttentionMap>>& maps) {
  const std::vector<double> values = weights.values();
  auto at = values.begin();
  for (int64_t b = 0; b < rows.sentences(); ++b) {
    const int64_t T = rows.offsets[b + 1] - rows.offsets[b];
    const int64_t S = cols.offsets[b + 1] - cols.offsets[b];
    for (int64_t h = 0; h < heads; ++h, at += T * S) {
      AttentionMap map{kind, layer, h, T, S, {}};
      std::transform(at, at + T * S, std::back_inserter(map.weights),
                     [](double v) { return static_cast<float>(v); });
      maps[static_cast<size_t>(b)].push_back(std::move(map));
    }
  }
}

}  // namespace

std::vector<std::vector<AttentionMap>> Transformer::attention(const Tokens& source,
                                                              const Tokens& target_in) const {
  const Packing from = Packing::of(source.offsets, store_.device());
  const Packing to = Packing::of(target_in.offsets, store_.device());
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  const int64_t heads = config_.heads;
  // What a sub-layer's function sees is x after post-norm, LayerNorm(x) before it in pre-norm.
  auto seen = [&](const SubLayer& add, const Tensor& x) {
    return add.place == NormPlace::pre ? add.norm(x) : x;
  };
  Tensor x = embed_source(source.ids, from);
  for (size_t i = 0; i < encoder_layers.size(); ++i) {
    const EncoderLayer& layer = encoder_layers[i];
    const Tensor qkv = layer.attend.project(seen(layer.add_1, x));
    add_maps("encoder", static_cast<int64_t>(i), heads,
             self_attention_weights(qkv, from, {heads, Look::everywhere, {}}), source, source,
             maps);
    x = layer(x, from);
  }
  const Tensor memory = final_norms.empty() ? x : final_norms[0](x);
  Tensor y = embed_target(target_in.ids, to);
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    const DecoderLayer& layer = decoder_layers[i];
    const Tensor qkv = layer.attend_self.project(seen(layer.add_1, y));
    add_maps("decoder", static_cast<int64_t>(i), heads,
             self_attention_weights(qkv, to, {heads, Look::back, {}}), target_in, target_in, maps);
    const Tensor a =
        layer.add_1(y, [&](const Tensor& h) { return layer.attend_self(h, to, Look::back); });
    const Tensor q = layer.attend_source.queries(seen(layer.add_2, a));
    const Tensor kv = layer.attend_source.keys_and_values(memory);
    add_maps("cross", static_cast<int64_t>(i), heads,
             cross_attention_weights(q, kv, to, from, {heads, Look::everywhere, {}}), target_in,
             source, maps);
    y = layer(y, to, memory, from);
  }
  return maps;
}

}  // namespace fovea
