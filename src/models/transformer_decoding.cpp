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
  std::vector<int32_t> words;     // [rows, steps]: the places of each row's words
  std::vector<int32_t> sentence;  // per row
  std::vector<int32_t> source_offsets;
  Remembered source;  // where the words of each row's source stand; absent: `sentence` has changed
};

void tabulate_source(State& s, Device device) {
  const auto first = [&](int32_t b) { return s.source_offsets[static_cast<size_t>(b)]; };
  std::vector<int32_t> lengths, index;
  int32_t width = 1;
  for (const int32_t b : s.sentence) {
    lengths.push_back(first(b + 1) - first(b));
    width = std::max(width, lengths.back());
  }
  for (const int32_t b : s.sentence) {
    const size_t end = index.size() + static_cast<size_t>(width);
    for (int32_t u = first(b); u < first(b + 1); ++u) index.push_back(u);
    index.resize(end, 0);
  }
  s.source.index = Tensor::of(index, device).view({s.rows, width});
  s.source.lengths = Tensor::of(lengths, device);
}

// Every row has one more word, which stands behind those there are.
Remembered add_words(State& s, Device device) {
  std::vector<int32_t> longer;
  longer.reserve(static_cast<size_t>(s.rows * (s.steps + 1)));
  for (int64_t r = 0; r < s.rows; ++r) {
    const auto row = s.words.begin() + r * s.steps;
    longer.insert(longer.end(), row, row + s.steps);
    longer.push_back(static_cast<int32_t>(s.used + r));
  }
  s.words = std::move(longer);
  const std::vector<int32_t> lengths(static_cast<size_t>(s.rows),
                                     static_cast<int32_t>(s.steps + 1));
  return {{}, Tensor::of(s.words, device).view({s.rows, s.steps + 1}), Tensor::of(lengths, device)};
}

// A step reads all that is remembered; moving it once in eight steps costs little beside that.
constexpr int64_t kStepsOfRoom = 8;

// Makes room for `rows` more rows. What no live row refers to any more is left behind.
void make_room(State& s, int64_t rows) {
  if (s.kv[0] && s.used + rows <= s.kv[0].size(0)) return;
  std::vector<int32_t> moved_to(static_cast<size_t>(s.used), -1), kept;
  for (int32_t& word : s.words) {
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
  for (int32_t b = 0; b < state->rows; ++b) state->sentence.push_back(b);
  state->source_offsets.assign(source.offsets.begin(), source.offsets.end());
  return state;
}

Tensor Transformer::step(DecoderState& decoder_state, std::span<const int32_t> words) const {
  auto& s = static_cast<State&>(decoder_state);
  assert(static_cast<int64_t>(words.size()) == s.rows);
  make_room(s, s.rows);
  Remembered self = add_words(s, store_.device());
  if (!s.source.index) tabulate_source(s, store_.device());

  const int64_t at = std::min(s.steps, max_length());
  const std::vector<int32_t> place(words.size(), static_cast<int32_t>(at));
  Tensor y = embed_target(words, Tensor::of(place, store_.device()), at + 1);
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    s.source.kv = s.source_kv[i];
    y = decoder_layers[i].step(y, s.source, [&](const Tensor& qkv) {
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
  std::vector<int32_t> words, sentence;
  for (const int32_t parent : parents) {
    const auto row = s.words.begin() + parent * s.steps;
    words.insert(words.end(), row, row + s.steps);
    sentence.push_back(s.sentence[static_cast<size_t>(parent)]);
  }
  if (sentence != s.sentence) s.source = {};
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
