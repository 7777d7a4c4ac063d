#include <algorithm>
#include <cassert>
#include <functional>
#include <numeric>

#include "models/transformer.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/recurrent.h"
#include "ops/shape.h"

// The Transformer with its attention interfered with. Words that are masked are taken from the keys
// and values that attention is given, so that the softmax is over the others; answers of heads that
// are silent or told where to look are written over before W_O.
namespace fovea {
namespace {

// One attention of one layer.
struct Place {
  const char* kind;
  int64_t layer;
};

class AlteredTransformer : public Model {
 public:
  AlteredTransformer(const Transformer& whole, WhatIf what)
      : Model(whole.parameters().type(), whole.parameters().device()), whole_(whole),
        what_(std::move(what)), heads_(whole.config().heads), D_(whole.config().size) {}

  int64_t target_words() const override { return whole_.target_words(); }
  int64_t max_length() const override { return whole_.max_length(); }

  BatchLoss loss(const Tokens& source, const Tokens& target_in, std::span<const int32_t> target_out,
                 double label_smoothing) const override;
  std::unique_ptr<DecoderState> start(const Tokens& source) const override;
  Tensor step(DecoderState& state, std::span<const int32_t> words) const override;
  void reorder(DecoderState& state, std::span<const int32_t> parents) const override;
  std::vector<std::vector<AttentionMap>> attention(const Tokens& source,
                                                   const Tokens& target_in) const override;

 private:
  using Maps = std::vector<AttentionMap>;

  // What the decoder may look at of its one source.
  struct Source {
    std::vector<Tensor> kv;     // per layer [kept pieces, 2D]
    std::vector<int32_t> kept;  // their places
    int64_t pieces = 0;         // with those that are masked
  };
  struct State : DecoderState {
    Source source;
    std::vector<Tensor> kv;  // per layer [rows · steps, 2D]: of the words, row by row
    int64_t rows = 1, steps = 0;
  };
  // Rows that ask the one source: all words of one sentence, or one word of several hypotheses.
  struct Asking {
    Packing queries;
    std::vector<int64_t> steps;  // of each row
  };
  // Concat(head_1, …, head_h) of a layer's self-attention.
  using AttendWords = std::function<Tensor(int64_t layer, const Tensor& qkv)>;

  Source encode(const Tokens& source, Maps* maps) const;
  // All words of one sentence.
  Tensor decode(const Tokens& target, const Source& source, Maps* maps) const;
  Tensor decode(Tensor y, const Asking& asking, const Source& source,
                const AttendWords& attend_words, Maps* maps) const;
  Tensor attend_source(const Tensor& q, int64_t layer, const Asking& asking, const Source& source,
                       Maps* maps) const;
  Tensor with_silence(const Tensor& heads, const Place& place) const;
  Tensor with_force(const Tensor& heads, int64_t layer, const Asking& asking,
                    const Source& source) const;
  void add_maps(const Tensor& weights, const Place& place, int64_t cols,
                std::span<const int32_t> kept, Maps& maps) const;

  Device device() const { return whole_.parameters().device(); }
  Packing packing(int64_t each, int64_t times) const;
  HeadsOptions look(Look where) const { return {heads_, where, {}}; }

  const Transformer& whole_;
  WhatIf what_;
  int64_t heads_, D_;
};

std::vector<int32_t> numbers_below(int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Tensor rows_of_list(const Tensor& x, std::span<const int32_t> list) {
  return rows_at(x, Tensor::of(list, x.device()));
}

// The sentence x so many times, one after another.
Tensor repeated(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const std::vector<int32_t> once = numbers_below(x.rows());
  std::vector<int32_t> index;
  for (int64_t i = 0; i < times; ++i) index.insert(index.end(), once.begin(), once.end());
  return rows_of_list(x, index);
}

// So many sentences, each as long.
Packing AlteredTransformer::packing(int64_t each, int64_t times) const {
  std::vector<int32_t> offsets;
  for (int64_t i = 0; i <= times; ++i) offsets.push_back(static_cast<int32_t>(i * each));
  return Packing::of(offsets, device());
}

AlteredTransformer::Source AlteredTransformer::encode(const Tokens& in, Maps* maps) const {
  assert(in.sentences() == 1);
  const Packing from = Packing::of(in.offsets, device());
  Source source{{}, numbers_below(from.tokens), from.tokens};
  std::erase_if(source.kept, [&](int32_t place) { return what_.masks(place); });
  const Packing keys = packing(std::ssize(source.kept), 1);
  const bool whole = what_.masked.empty();
  const HeadsOptions options = look(Look::everywhere);
  Tensor x = whole_.embed_source(in.ids, from);
  for (size_t i = 0; i < whole_.encoder_layers.size(); ++i) {
    const EncoderLayer& layer = whole_.encoder_layers[i];
    const Place place{"encoder", static_cast<int64_t>(i)};
    const Tensor a = layer.add_1(x, [&](const Tensor& h) {
      const Tensor qkv = layer.attend.project(h), q = columns(qkv, 0, D_);
      const Tensor kv = rows_of_list(columns(qkv, D_, 2 * D_), source.kept);
      if (maps)
        add_maps(whole ? self_attention_weights(qkv, from, options)
                       : cross_attention_weights(q, kv, from, keys, options),
                 place, from.tokens, source.kept, *maps);
      const Tensor heads =
          whole ? self_attention(qkv, from, options) : cross_attention(q, kv, from, keys, options);
      return layer.attend.W_O(with_silence(heads, place));
    });
    x = layer.add_2(a, layer.feed_forward);
  }
  if (!whole_.final_norms.empty()) x = whole_.final_norms[0](x);
  const Tensor memory = whole ? x : rows_of_list(x, source.kept);
  for (const DecoderLayer& layer : whole_.decoder_layers)
    source.kv.push_back(layer.attend_source.keys_and_values(memory));
  return source;
}

Tensor AlteredTransformer::decode(Tensor y, const Asking& asking, const Source& source,
                                  const AttendWords& attend_words, Maps* maps) const {
  for (size_t i = 0; i < whole_.decoder_layers.size(); ++i) {
    const DecoderLayer& layer = whole_.decoder_layers[i];
    const auto number = static_cast<int64_t>(i);
    const Tensor a = layer.add_1(y, [&](const Tensor& h) {
      const Tensor heads = attend_words(number, layer.attend_self.project(h));
      return layer.attend_self.W_O(with_silence(heads, {"decoder", number}));
    });
    const Tensor b = layer.add_2(a, [&](const Tensor& h) {
      const Tensor q = layer.attend_source.queries(h);
      return layer.attend_source.W_O(attend_source(q, number, asking, source, maps));
    });
    y = layer.add_3(b, layer.feed_forward);
  }
  return whole_.final_norms.empty() ? y : whole_.final_norms[1](y);
}

Tensor AlteredTransformer::decode(const Tokens& target, const Source& source, Maps* maps) const {
  assert(target.sentences() == 1);
  Asking asking{Packing::of(target.offsets, device()), {}};
  const Packing& to = asking.queries;
  asking.steps.resize(static_cast<size_t>(to.tokens));
  std::iota(asking.steps.begin(), asking.steps.end(), 0);
  const auto attend_words = [&](int64_t layer, const Tensor& qkv) {
    const HeadsOptions back = look(Look::back);
    if (maps)
      add_maps(self_attention_weights(qkv, to, back), {"decoder", layer}, to.tokens,
               numbers_below(to.tokens), *maps);
    return self_attention(qkv, to, back);
  };
  return decode(whole_.embed_target(target.ids, to), asking, source, attend_words, maps);
}

Tensor AlteredTransformer::attend_source(const Tensor& q, int64_t layer, const Asking& asking,
                                         const Source& source, Maps* maps) const {
  const int64_t times = asking.queries.sentences;
  const Packing keys = packing(std::ssize(source.kept), times);
  const Tensor kv = repeated(source.kv[static_cast<size_t>(layer)], times);
  const HeadsOptions options = look(Look::everywhere);
  if (maps)
    add_maps(cross_attention_weights(q, kv, asking.queries, keys, options), {"cross", layer},
             source.pieces, source.kept, *maps);
  const Tensor heads = cross_attention(q, kv, asking.queries, keys, options);
  return with_silence(with_force(heads, layer, asking, source), {"cross", layer});
}

// 0 for heads that are silent.
Tensor AlteredTransformer::with_silence(const Tensor& heads, const Place& place) const {
  std::vector<double> heard;
  for (int64_t h = 0; h < heads_; ++h)
    heard.insert(heard.end(), static_cast<size_t>(D_ / heads_),
                 what_.silences(place.kind, place.layer, h) ? 0 : 1);
  if (std::ranges::find(heard, 0.0) == heard.end()) return heads;
  return heads * Tensor::of({1, D_}, heard, heads.type(), heads.device());
}

// head_i = α V_i for rows whose α is given.
Tensor AlteredTransformer::with_force(const Tensor& heads, int64_t layer, const Asking& asking,
                                      const Source& source) const {
  const int64_t d_k = D_ / heads_;
  std::vector<double> values, V;
  for (int64_t row = 0; row < std::ssize(asking.steps); ++row)
    for (int64_t h = 0; h < heads_; ++h) {
      const WhatIf::Row* forced = what_.forced_row(asking.steps[row], layer, h);
      if (!forced) continue;
      if (V.empty()) {
        V = columns(source.kv[static_cast<size_t>(layer)], D_, D_).values();
        values = heads.values();
      }
      for (int64_t k = h * d_k; k < (h + 1) * d_k; ++k) {
        double sum = 0;  // Σ_j α_j V_j
        for (int64_t j = 0; j < std::ssize(source.kept); ++j)
          sum += forced->weights[source.kept[j]] * V[j * D_ + k];
        values[row * D_ + k] = sum;
      }
    }
  return V.empty() ? heads : Tensor::of(heads.shape(), values, heads.type(), heads.device());
}

// weights [heads, rows, kept] as a map per head, with 0 for what is masked.
void AlteredTransformer::add_maps(const Tensor& weights, const Place& place, int64_t cols,
                                  std::span<const int32_t> kept, Maps& maps) const {
  const std::vector<double> values = weights.values();
  const int64_t rows = std::ssize(values) / (heads_ * std::ssize(kept));
  const bool cross = std::string_view(place.kind) == "cross";
  auto at = values.begin();
  for (int64_t h = 0; h < heads_; ++h) {
    AttentionMap map{place.kind, place.layer, h, rows, cols, {}};
    map.weights.assign(static_cast<size_t>(rows * cols), 0.0f);
    const bool silent = what_.silences(place.kind, place.layer, h);
    for (int64_t i = 0; i < rows; ++i) {
      const WhatIf::Row* forced = cross ? what_.forced_row(i, place.layer, h) : nullptr;
      for (const int32_t j : kept) {
        const double found = *at++;
        if (!silent)
          map.weights[i * cols + j] = static_cast<float>(forced ? forced->weights[j] : found);
      }
    }
    maps.push_back(std::move(map));
  }
}

std::unique_ptr<DecoderState> AlteredTransformer::start(const Tokens& source) const {
  auto state = std::make_unique<State>();
  state->source = encode(source, nullptr);
  state->kv.resize(whole_.decoder_layers.size());
  return state;
}

Tensor AlteredTransformer::step(DecoderState& decoder_state, std::span<const int32_t> words) const {
  auto& state = static_cast<State&>(decoder_state);
  const int64_t rows = state.rows, before = state.steps;
  assert(std::ssize(words) == rows);
  const auto place = static_cast<int32_t>(std::min(before, max_length()));
  const std::vector<int32_t> places(static_cast<size_t>(rows), place);
  const Asking asking{packing(1, rows), std::vector<int64_t>(static_cast<size_t>(rows), before)};
  std::vector<int32_t> index;  // the words of each row, then its new one
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t t = 0; t < before; ++t) index.push_back(static_cast<int32_t>(i * before + t));
    index.push_back(static_cast<int32_t>(rows * before + i));
  }
  const Packing keys = packing(before + 1, rows);
  const auto attend_words = [&](int64_t layer, const Tensor& qkv) {
    Tensor& kv = state.kv[static_cast<size_t>(layer)];
    const Tensor now = columns(qkv, D_, 2 * D_);
    kv = kv ? rows_of_list(below_each_other({kv, now}), index) : now;
    return cross_attention(columns(qkv, 0, D_), kv, asking.queries, keys, look(Look::everywhere));
  };
  const Tensor y = whole_.embed_target(words, Tensor::of(places, device()), place + 1);
  ++state.steps;
  return whole_.logits(decode(y, asking, state.source, attend_words, nullptr));
}

void AlteredTransformer::reorder(DecoderState& decoder_state,
                                 std::span<const int32_t> parents) const {
  auto& state = static_cast<State&>(decoder_state);
  std::vector<int32_t> index;
  for (const int32_t parent : parents)
    for (int64_t t = 0; t < state.steps; ++t)
      index.push_back(static_cast<int32_t>(parent * state.steps + t));
  for (Tensor& kv : state.kv)
    if (kv) kv = rows_of_list(kv, index);
  state.rows = std::ssize(parents);
}

std::vector<std::vector<AttentionMap>> AlteredTransformer::attention(
    const Tokens& source, const Tokens& target_in) const {
  std::vector<std::vector<AttentionMap>> all(static_cast<size_t>(source.sentences()));
  const auto part = [](const Tokens& of, size_t i, std::vector<int32_t>& offsets) -> Tokens {
    const int32_t first = of.offsets[i], count = of.offsets[i + 1] - first;
    offsets = {0, count};
    return {of.ids.subspan(first, count), offsets};
  };
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<int32_t> from, to;
    const Source read = encode(part(source, i, from), &all[i]);
    decode(part(target_in, i, to), read, &all[i]);
  }
  return all;
}

BatchLoss AlteredTransformer::loss(const Tokens& source, const Tokens& target_in,
                                   std::span<const int32_t> target_out,
                                   double label_smoothing) const {
  const Tensor y = decode(target_in, encode(source, nullptr), nullptr);
  const CrossEntropy out =
      output_loss(y, whole_.W_out, whole_.b_out, Tensor::of(target_out, device()), label_smoothing);
  return {out.loss, out.log_likelihood};
}

}  // namespace

std::unique_ptr<Model> Transformer::altered(const WhatIf& what) const {
  return std::make_unique<AlteredTransformer>(*this, what);
}

}  // namespace fovea
