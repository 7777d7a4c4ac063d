#include <algorithm>
#include <cassert>
#include <cmath>
#include <functional>
#include <numeric>

#include "models/transformer.h"
#include "ops/cross_entropy.h"
#include "ops/embedding.h"
#include "ops/recurrent.h"
#include "ops/shape.h"
#include "ops/softmax.h"

// The Transformer with an intervention on its attention weights. Masked words are removed from the
// keys and values, so the softmax is over the unmasked words. If a head is silent or has forced
// weights, its output is replaced before the product with W_O.
namespace fovea {
namespace {

// Identifies one attention layer.
struct AttentionLayer {
  const char* kind;
  int64_t layer;
};

class TransformerWithIntervention : public Model, public Decodable, public Attentive {
 public:
  TransformerWithIntervention(const Transformer& model, WhatIf intervention)
      : Model(model.parameters().type(), model.parameters().device(), model.shape()), model_(model),
        intervention_(std::move(intervention)), heads_(model.config().heads),
        A_(model.config().attention_size(model.shape())) {}

  BatchLoss loss(const TrainingBatch& batch, double label_smoothing) const override;
  std::unique_ptr<DecoderState> start(const TokenBatch& source) const override;
  Tensor step(DecoderState& state, std::span<const int32_t> words) const override;
  void reorder(DecoderState& state, std::span<const int32_t> parents) const override;
  std::vector<std::vector<AttentionMap>> attention(const TokenBatch& source,
                                                   const TokenBatch& target_in) const override;

 private:
  using Maps = std::vector<AttentionMap>;

  // The keys and values of the one source sentence for the cross-attention.
  struct Source {
    std::vector<Tensor> kv;     // per layer [unmasked pieces, 2A]
    std::vector<int32_t> kept;  // positions of the unmasked pieces
    int64_t pieces = 0;         // number of pieces, with the masked ones
  };
  struct State : DecoderState {
    Source source;
    // Per layer: keys and values of target words [rows · steps, 2A], or the recurrent states after
    // the last words [rows, D].
    std::vector<Tensor> kv;
    int64_t rows = 1, steps = 0;
  };
  // The queries that attend to the one source: all words of one target, or the new word of each
  // hypothesis.
  struct SourceQueries {
    SentenceOffsets offsets;
    std::vector<int64_t> steps;  // for each row, the number of its decoder step
  };
  // A function that computes Concat(head_1, …, head_h) of a layer's decoder self-attention, or the
  // output of its recurrent unit, from the input of the sub-layer.
  using ReadWords = std::function<Tensor(int64_t layer, const Tensor& h)>;

  Source encode(const TokenBatch& source, Maps* maps) const;
  // Decodes all words of one target under teacher forcing.
  Tensor decode(const TokenBatch& target, const Source& source, Maps* maps) const;
  Tensor decode(Tensor y, const SourceQueries& queries, const Source& source,
                const ReadWords& read_words, Maps* maps) const;
  Tensor step_of_words(State& state, int64_t layer, const Tensor& h) const;
  Tensor attend_source(const Tensor& q, int64_t layer, const SourceQueries& queries,
                       const Source& source, Maps* maps) const;
  Tensor silence_heads(const Tensor& heads, const AttentionLayer& place) const;
  Tensor force_weights(const Tensor& heads, int64_t layer, const SourceQueries& queries,
                       const Source& source) const;
  void add_maps(const Tensor& weights, const AttentionLayer& place, int64_t cols,
                std::span<const int32_t> kept, Maps& maps) const;

  // The keep mask [words, words] of the source: a column is 0 if its word is masked.
  Tensor keep_mask(int64_t words) const;
  Device device() const { return model_.parameters().device(); }
  SentenceOffsets equal_sentences(int64_t length, int64_t count) const;
  HeadsOptions masked(AttentionMask mask) const { return {heads_, mask, {}}; }

  const Transformer& model_;
  WhatIf intervention_;
  int64_t heads_, A_;  // A = heads · d_k
};

std::vector<int32_t> numbers_below(int64_t count) {
  std::vector<int32_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

Tensor rows_of_list(const Tensor& x, std::span<const int32_t> list) {
  return rows_at(x, Tensor::of(list, x.device()));
}

// Returns `times` copies of the rows of x, one copy after another.
Tensor repeated(const Tensor& x, int64_t times) {
  if (times == 1) return x;
  const std::vector<int32_t> once = numbers_below(x.rows());
  std::vector<int32_t> index;
  for (int64_t i = 0; i < times; ++i) index.insert(index.end(), once.begin(), once.end());
  return rows_of_list(x, index);
}

// Self-attention of one sentence in which no word attends to masked words. They stay in the
// sentence, so that the distances of the other words do not change.
struct MaskedSelfAttention {
  Tensor heads;    // Concat(head_1, …, head_h)
  Tensor weights;  // [heads · words, words]

  // keep: a keep mask [words, words]. REQUIRES: there are distance scores.
  MaskedSelfAttention(const Tensor& qkv, const Tensor& keep, const HeadsOptions& options) {
    const int64_t n = qkv.rows(), A = qkv.cols() / 3, d_k = A / options.heads;
    const int64_t reach = (options.distance_scores.rows() - 1) / 2;
    std::vector<Tensor> outputs, all_weights;
    for (int64_t h = 0; h < options.heads; ++h) {
      const Tensor Q = columns(qkv, h * d_k, d_k), K = columns(qkv, A + h * d_k, d_k),
                   V = columns(qkv, 2 * A + h * d_k, d_k);
      const Tensor of_head = transpose(columns(options.distance_scores, h, 1));
      std::vector<Tensor> distances;
      for (int64_t i = 0; i < n; ++i) distances.push_back(columns(of_head, reach - i, n));
      const double scale = 1 / std::sqrt(static_cast<double>(d_k));
      const Tensor e = matmul(Q, transpose(K)) * scale + concat_rows(distances);
      all_weights.push_back(softmax(e, keep));
      outputs.push_back(matmul(all_weights.back(), V));
    }
    heads = concat_columns(outputs);
    weights = concat_rows(all_weights);
  }
};

// The offsets of `count` sentences of equal length.
SentenceOffsets TransformerWithIntervention::equal_sentences(int64_t length, int64_t count) const {
  std::vector<int32_t> offsets;
  for (int64_t i = 0; i <= count; ++i) offsets.push_back(static_cast<int32_t>(i * length));
  return SentenceOffsets::of(offsets, device());
}

Tensor TransformerWithIntervention::keep_mask(int64_t words) const {
  std::vector<double> keep;
  for (int64_t i = 0; i < words; ++i)
    for (int64_t j = 0; j < words; ++j) keep.push_back(intervention_.masks(j) ? 0 : 1);
  return Tensor::of({words, words}, keep, model_.parameters().type(), device());
}

TransformerWithIntervention::Source TransformerWithIntervention::encode(const TokenBatch& in,
                                                                        Maps* maps) const {
  assert(in.sentences() == 1);
  const SentenceOffsets from = SentenceOffsets::of(in.offsets, device());
  Source source{{}, numbers_below(from.tokens), from.tokens};
  std::erase_if(source.kept, [&](int32_t position) { return intervention_.masks(position); });
  const SentenceOffsets keys = equal_sentences(std::ssize(source.kept), 1);
  const bool unmasked = intervention_.masked.empty();
  HeadsOptions options = masked(AttentionMask::none);
  options.distance_scores = distance_scores(model_.encoder_distances, from.longest);
  const bool keeps_distances = options.distance_scores && !unmasked;
  const Tensor keep = keeps_distances ? keep_mask(from.tokens) : Tensor();
  Tensor x = model_.embed_source(in.ids, from);
  for (size_t i = 0; i < model_.encoder_layers.size(); ++i) {
    const EncoderLayer& layer = model_.encoder_layers[i];
    const AttentionLayer place{"encoder", static_cast<int64_t>(i)};
    const Tensor a = layer.add_1(x, [&](const Tensor& h) {
      const Tensor qkv = layer.attend.project(h), q = columns(qkv, 0, A_);
      if (keeps_distances) {
        const MaskedSelfAttention masked(qkv, keep, options);
        if (maps) add_maps(masked.weights, place, from.tokens, numbers_below(from.tokens), *maps);
        return layer.attend.W_O(silence_heads(masked.heads, place));
      }
      const Tensor kv = rows_of_list(columns(qkv, A_, 2 * A_), source.kept);
      if (maps)
        add_maps(unmasked ? self_attention_weights(qkv, from, options)
                          : cross_attention_weights(q, kv, from, keys, options),
                 place, from.tokens, source.kept, *maps);
      const Tensor heads = unmasked ? self_attention(qkv, from, options)
                                    : cross_attention(q, kv, from, keys, options);
      return layer.attend.W_O(silence_heads(heads, place));
    });
    x = layer.add_2(a, layer.feed_forward);
  }
  if (!model_.final_norms.empty()) x = model_.final_norms[0](x);
  const Tensor memory = unmasked ? x : rows_of_list(x, source.kept);
  for (const DecoderLayer& layer : model_.decoder_layers)
    source.kv.push_back(layer.attend_source.keys_and_values(memory));
  return source;
}

Tensor TransformerWithIntervention::decode(Tensor y, const SourceQueries& queries,
                                           const Source& source, const ReadWords& read_words,
                                           Maps* maps) const {
  for (size_t i = 0; i < model_.decoder_layers.size(); ++i) {
    const DecoderLayer& layer = model_.decoder_layers[i];
    const auto number = static_cast<int64_t>(i);
    const Tensor a = layer.add_1(y, [&](const Tensor& h) {
      const Tensor words = read_words(number, h);
      if (layer.recur) return words;
      return layer.attend_self->W_O(silence_heads(words, {"decoder", number}));
    });
    const Tensor b = layer.add_2(a, [&](const Tensor& h) {
      const Tensor q = layer.attend_source.queries(h);
      return layer.attend_source.W_O(attend_source(q, number, queries, source, maps));
    });
    y = layer.add_3(b, layer.feed_forward);
  }
  return model_.final_norms.empty() ? y : model_.final_norms[1](y);
}

Tensor TransformerWithIntervention::decode(const TokenBatch& target, const Source& source,
                                           Maps* maps) const {
  assert(target.sentences() == 1);
  SourceQueries queries{SentenceOffsets::of(target.offsets, device()), {}};
  const SentenceOffsets& to = queries.offsets;
  queries.steps.resize(static_cast<size_t>(to.tokens));
  std::iota(queries.steps.begin(), queries.steps.end(), 0);
  HeadsOptions back = masked(AttentionMask::causal);
  back.distance_scores = distance_scores(model_.decoder_distances, to.longest);
  const auto read_words = [&](int64_t layer, const Tensor& h) {
    const DecoderLayer& at = model_.decoder_layers[static_cast<size_t>(layer)];
    if (at.recur) return (*at.recur)(h, to);
    const Tensor qkv = at.attend_self->project(h);
    if (maps)
      add_maps(self_attention_weights(qkv, to, back), {"decoder", layer}, to.tokens,
               numbers_below(to.tokens), *maps);
    return self_attention(qkv, to, back);
  };
  return decode(model_.embed_target(target.ids, to), queries, source, read_words, maps);
}

Tensor TransformerWithIntervention::attend_source(const Tensor& q, int64_t layer,
                                                  const SourceQueries& queries,
                                                  const Source& source, Maps* maps) const {
  const int64_t times = queries.offsets.sentences;
  const SentenceOffsets keys = equal_sentences(std::ssize(source.kept), times);
  const Tensor kv = repeated(source.kv[static_cast<size_t>(layer)], times);
  const HeadsOptions options = masked(AttentionMask::none);
  if (maps)
    add_maps(cross_attention_weights(q, kv, queries.offsets, keys, options), {"cross", layer},
             source.pieces, source.kept, *maps);
  const Tensor heads = cross_attention(q, kv, queries.offsets, keys, options);
  return silence_heads(force_weights(heads, layer, queries, source), {"cross", layer});
}

// Sets the outputs of silent heads to 0.
Tensor TransformerWithIntervention::silence_heads(const Tensor& heads,
                                                  const AttentionLayer& place) const {
  std::vector<double> scale;
  for (int64_t h = 0; h < heads_; ++h)
    scale.insert(scale.end(), static_cast<size_t>(A_ / heads_),
                 intervention_.silences(place.kind, place.layer, h) ? 0 : 1);
  if (std::ranges::find(scale, 0.0) == scale.end()) return heads;
  return heads * Tensor::of({1, A_}, scale, heads.type(), heads.device());
}

// If the weights α of a row and head are forced, sets head_i = α V_i in that row.
Tensor TransformerWithIntervention::force_weights(const Tensor& heads, int64_t layer,
                                                  const SourceQueries& queries,
                                                  const Source& source) const {
  const int64_t d_k = A_ / heads_;
  std::vector<double> values, V;
  for (int64_t row = 0; row < std::ssize(queries.steps); ++row)
    for (int64_t h = 0; h < heads_; ++h) {
      const WhatIf::Row* forced = intervention_.forced_row(queries.steps[row], layer, h);
      if (!forced) continue;
      if (V.empty()) {
        V = columns(source.kv[static_cast<size_t>(layer)], A_, A_).values();
        values = heads.values();
      }
      for (int64_t k = h * d_k; k < (h + 1) * d_k; ++k) {
        double sum = 0;  // Σ_j α_j V_j
        for (int64_t j = 0; j < std::ssize(source.kept); ++j)
          sum += forced->weights[source.kept[j]] * V[j * A_ + k];
        values[row * A_ + k] = sum;
      }
    }
  return V.empty() ? heads : Tensor::of(heads.shape(), values, heads.type(), heads.device());
}

// Appends one map with `cols` columns per head. `weights` [heads, rows, kept] has columns for
// unmasked words only. In the maps, masked words and silent heads get 0, and forced weights replace
// the computed weights.
void TransformerWithIntervention::add_maps(const Tensor& weights, const AttentionLayer& place,
                                           int64_t cols, std::span<const int32_t> kept,
                                           Maps& maps) const {
  const std::vector<double> values = weights.values();
  const int64_t rows = std::ssize(values) / (heads_ * std::ssize(kept));
  const bool cross = std::string_view(place.kind) == "cross";
  auto at = values.begin();
  for (int64_t h = 0; h < heads_; ++h) {
    AttentionMap map{place.kind, place.layer, h, rows, cols, {}};
    map.weights.assign(static_cast<size_t>(rows * cols), 0.0f);
    const bool silent = intervention_.silences(place.kind, place.layer, h);
    for (int64_t i = 0; i < rows; ++i) {
      const WhatIf::Row* forced = cross ? intervention_.forced_row(i, place.layer, h) : nullptr;
      for (const int32_t j : kept) {
        const double weight = *at++;
        if (!silent)
          map.weights[i * cols + j] = static_cast<float>(forced ? forced->weights[j] : weight);
      }
    }
    maps.push_back(std::move(map));
  }
}

std::unique_ptr<DecoderState> TransformerWithIntervention::start(const TokenBatch& source) const {
  auto state = std::make_unique<State>();
  state->source = encode(source, nullptr);
  state->kv.resize(model_.decoder_layers.size());
  return state;
}

// Reads the new word of each row, given its earlier words.
Tensor TransformerWithIntervention::step_of_words(State& state, int64_t layer,
                                                  const Tensor& h) const {
  const int64_t rows = state.rows, steps = state.steps;
  const DecoderLayer& at = model_.decoder_layers[static_cast<size_t>(layer)];
  Tensor& kv = state.kv[static_cast<size_t>(layer)];
  if (at.recur) {
    const Tensor f = at.recur->forget(h), x = linear(h, at.recur->W);
    const Tensor fresh = x + f * x * -1.0;  // (1 − f) ⊙ W x
    kv = kv ? f * kv + fresh : fresh;
    return relu(kv);
  }
  std::vector<int32_t> index;  // for each row: its earlier words, then the new word
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t t = 0; t < steps; ++t) index.push_back(static_cast<int32_t>(i * steps + t));
    index.push_back(static_cast<int32_t>(rows * steps + i));
  }
  const Tensor qkv = at.attend_self->project(h), now = columns(qkv, A_, 2 * A_);
  kv = kv ? rows_of_list(concat_rows({kv, now}), index) : now;
  HeadsOptions options = masked(AttentionMask::none);
  if (model_.decoder_distances) {  // the only query is number 0 here, and `steps` in its sentence
    const Tensor all = model_.decoder_distances->for_length(2 * steps + 1);
    options.distance_scores = all.window(0, 2 * steps + 1);
  }
  return cross_attention(columns(qkv, 0, A_), kv, equal_sentences(1, rows),
                         equal_sentences(steps + 1, rows), options);
}

Tensor TransformerWithIntervention::step(DecoderState& decoder_state,
                                         std::span<const int32_t> words) const {
  auto& state = static_cast<State&>(decoder_state);
  const int64_t rows = state.rows, steps = state.steps;
  assert(std::ssize(words) == rows);
  const auto position = static_cast<int32_t>(std::min(steps, max_length()));
  const std::vector<int32_t> positions(static_cast<size_t>(rows), position);
  const SourceQueries queries{equal_sentences(1, rows),
                              std::vector<int64_t>(static_cast<size_t>(rows), steps)};
  const auto read_words = [&](int64_t layer, const Tensor& h) {
    return step_of_words(state, layer, h);
  };
  const Tensor y = model_.embed_target(words, Tensor::of(positions, device()), position + 1);
  const Tensor scores = model_.logits(decode(y, queries, state.source, read_words, nullptr));
  ++state.steps;
  return scores;
}

void TransformerWithIntervention::reorder(DecoderState& decoder_state,
                                          std::span<const int32_t> parents) const {
  auto& state = static_cast<State&>(decoder_state);
  const int64_t each = model_.config().recurrent_decoder() ? 1 : state.steps;  // lines of a row
  std::vector<int32_t> index;
  for (const int32_t parent : parents)
    for (int64_t t = 0; t < each; ++t) index.push_back(static_cast<int32_t>(parent * each + t));
  for (Tensor& kv : state.kv)
    if (kv) kv = rows_of_list(kv, index);
  state.rows = std::ssize(parents);
}

std::vector<std::vector<AttentionMap>> TransformerWithIntervention::attention(
    const TokenBatch& source, const TokenBatch& target_in) const {
  std::vector<std::vector<AttentionMap>> all(static_cast<size_t>(source.sentences()));
  const auto sentence = [](const TokenBatch& batch, size_t i,
                           std::vector<int32_t>& offsets) -> TokenBatch {
    const int32_t first = batch.offsets[i], count = batch.offsets[i + 1] - first;
    offsets = {0, count};
    return {batch.ids.subspan(first, count), offsets};
  };
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<int32_t> from, to;
    const Source encoded = encode(sentence(source, i, from), &all[i]);
    decode(sentence(target_in, i, to), encoded, &all[i]);
  }
  return all;
}

BatchLoss TransformerWithIntervention::loss(const TrainingBatch& batch,
                                            double label_smoothing) const {
  const Tensor y = decode(batch.target_in, encode(batch.source, nullptr), nullptr);
  const CrossEntropy out = output_loss(y, model_.W_out, model_.b_out,
                                       Tensor::of(batch.target_out, device()), label_smoothing);
  return {out.loss, out.log_likelihood};
}

}  // namespace

std::unique_ptr<Model> Transformer::with_intervention(const WhatIf& intervention) const {
  return std::make_unique<TransformerWithIntervention>(*this, intervention);
}

}  // namespace fovea
