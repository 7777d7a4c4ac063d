#include <algorithm>
#include <iterator>
#include <mutex>

#include "attention/attention_steps.h"
#include "models/transformer.h"
#include "ops/elementwise.h"
#include "ops/shape.h"
#include "tensor/tape.h"

// Decoding with the Transformer one word at a time. The key/value cache (DecoderMemory) holds the
// keys and values of earlier words. The keys and values of the source are computed once per
// sentence.
namespace fovea {

// The pool of decoder memories. On a GPU, a memory also has the CUDA graphs of its steps. Because
// of the pool, later searches can reuse these graphs.
struct IdleMemories {
  std::mutex mutex;
  std::vector<std::unique_ptr<DecoderMemory>> all;

  std::unique_ptr<DecoderMemory> take() {
    const std::lock_guard hold(mutex);
    if (all.empty()) return nullptr;
    auto last = std::move(all.back());
    all.pop_back();
    return last;
  }
  void give_back(std::unique_ptr<DecoderMemory> memory) {
    memory->forget();
    const std::lock_guard hold(mutex);
    all.push_back(std::move(memory));
  }
};

std::shared_ptr<IdleMemories> idle_memories() { return std::make_shared<IdleMemories>(); }

namespace {

struct State : DecoderState {
  std::shared_ptr<IdleMemories> home;
  std::unique_ptr<DecoderMemory> memory;

  ~State() override {
    if (memory) home->give_back(std::move(memory));
  }
};

DecoderMemory& memory_of(DecoderState& state) { return *static_cast<State&>(state).memory; }

}  // namespace

Tensor DecoderLayer::step(const Tensor& y, int64_t number, const Tensor& distance_scores,
                          DecoderMemory& memory) const {
  const Tensor a = add_1(y, [&](const Tensor& h) {
    if (recur) return relu(memory.average_words(number, recur->forget(h), linear(h, recur->W)));
    const Tensor qkv = linear(h, attend_self->W_QKV, attend_self->b_QKV, OutputType::activation);
    return attend_self->W_O(memory.attend_words(number, qkv, distance_scores));
  });
  const Tensor b = add_2(a, [&](const Tensor& h) {
    const Tensor q = linear(h, attend_source.W_Q, attend_source.b_Q, OutputType::activation);
    return attend_source.W_O(memory.attend_source(number, q));
  });
  return add_3(b, feed_forward);
}

std::vector<Tensor> Transformer::source_kv(const TokenBatch& source) const {
  const SentenceOffsets from = SentenceOffsets::of(source.offsets, store_.device());
  const Tensor memory = encode(embed_source(source.ids, from), from);
  std::vector<Tensor> kv;
  for (const DecoderLayer& layer : decoder_layers) {
    const MultiHeadAttention& attend = layer.attend_source;
    kv.push_back(linear(memory, attend.W_KV, attend.b_KV, OutputType::activation));
  }
  return kv;
}

std::unique_ptr<DecoderState> Transformer::start(const TokenBatch& source) const {
  auto state = std::make_unique<State>();
  state->home = idle_;
  state->memory = idle_->take();
  if (!state->memory)
    state->memory = decoder_memory({std::ssize(decoder_layers), config_.attention_size(shape_),
                                    config_.heads, config_.recurrent_decoder() ? shape_.size : 0},
                                   store_.device());
  state->memory->start(source_kv(source), source.offsets);
  return state;
}

void HostTransformer::extend(DecoderState& state, const TokenBatch& source) const {
  memory_of(state).join(source_kv(source), source.offsets);
}

DecoderMemory::Next Transformer::next(const DecoderMemory& memory,
                                      std::span<const int32_t> words) const {
  const int64_t position = std::min(memory.steps(), max_length());
  return {words, static_cast<int32_t>(position),
          decoder_distances ? decoder_distances->buckets.covering(memory.steps() + 1)
                            : embed_target.positions(position + 1)};
}

Tensor Transformer::compute_step(const DecoderMemory::Rows& in, const Tensor& constant,
                                 DecoderMemory& memory) const {
  const bool relative = decoder_distances.has_value();
  const Tensor distances = relative ? decoder_distances->scores_of(constant) : Tensor();
  Tensor y = embed_target.embed_at(in.words, in.places, relative ? Tensor() : constant);
  for (size_t i = 0; i < decoder_layers.size(); ++i)
    y = decoder_layers[i].step(y, static_cast<int64_t>(i), distances, memory);
  return memory.scores(final_norms.empty() ? y : final_norms[1](y), W_out, b_out);
}

Tensor Transformer::step(DecoderState& state, std::span<const int32_t> words) const {
  DecoderMemory& memory = memory_of(state);
  assert(static_cast<int64_t>(words.size()) == memory.rows());
  const DecoderMemory::Next in = next(memory, words);
  return memory.step(
      in, [&](const DecoderMemory::Rows& rows) { return compute_step(rows, in.constant, memory); });
}

void DeviceTransformer::start_device_search(DecoderState& state, const BeamRules& rules) const {
  memory_of(state).start_device_search(rules);
}

const BeamStepResult& DeviceTransformer::device_step(DecoderState& state, int64_t rows) const {
  DecoderMemory& memory = memory_of(state);
  const std::vector<int32_t> begin(static_cast<size_t>(memory.steps() == 0 ? rows : 0),
                                   frame().start);
  const DecoderMemory::Next in = next(memory, begin);
  return memory.device_step(rows, in, [&](const DecoderMemory::Rows& inputs) {
    return compute_step(inputs, in.constant, memory);
  });
}

void Transformer::reorder(DecoderState& state, std::span<const int32_t> parents) const {
  memory_of(state).reorder(parents);
}

namespace {

// Splits the weights of a packed batch into one map per head and sentence. Appends each map to the
// list of its sentence. `weights` holds [heads, T, S] of each sentence, one sentence after another.
void add_maps(const char* kind, int64_t layer, int64_t heads, const Tensor& weights,
              const TokenBatch& rows, const TokenBatch& cols,
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

void Transformer::each_attention(
    const TokenBatch& source, const TokenBatch& target_in,
    const std::function<void(const AttentionProjections&)>& visit) const {
  const SentenceOffsets from = SentenceOffsets::of(source.offsets, store_.device());
  const SentenceOffsets to = SentenceOffsets::of(target_in.offsets, store_.device());
  // The input of the function of a sub-layer: with post-norm x, with pre-norm LayerNorm(x).
  auto input_of = [&](const SubLayer& add, const Tensor& x) {
    return add.place == NormPlace::pre ? add.norm(x) : x;
  };
  const Tensor source_distances = distance_scores(encoder_distances, from.longest);
  const Tensor target_distances = distance_scores(decoder_distances, to.longest);
  Tensor x = embed_source(source.ids, from);
  for (size_t i = 0; i < encoder_layers.size(); ++i) {
    const EncoderLayer& layer = encoder_layers[i];
    visit({"encoder",
           static_cast<int64_t>(i),
           {},
           {},
           layer.attend.project(input_of(layer.add_1, x)),
           source_distances});
    x = layer(x, from, source_distances);
  }
  const Tensor memory = final_norms.empty() ? x : final_norms[0](x);
  Tensor y = embed_target(target_in.ids, to);
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    const DecoderLayer& layer = decoder_layers[i];
    const auto number = static_cast<int64_t>(i);
    if (layer.attend_self)
      visit({"decoder",
             number,
             {},
             {},
             layer.attend_self->project(input_of(layer.add_1, y)),
             target_distances});
    const Tensor a = layer.read_words(y, to, target_distances);
    visit({"cross",
           number,
           layer.attend_source.queries(input_of(layer.add_2, a)),
           layer.attend_source.keys_and_values(memory),
           {}});
    y = layer(y, to, memory, from, {target_distances, nullptr});
  }
}

std::vector<std::vector<AttentionMap>> Transformer::attention(const TokenBatch& source,
                                                              const TokenBatch& target_in) const {
  const SentenceOffsets from = SentenceOffsets::of(source.offsets, store_.device());
  const SentenceOffsets to = SentenceOffsets::of(target_in.offsets, store_.device());
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  each_attention(source, target_in, [&](const AttentionProjections& p) {
    const std::string_view kind = p.kind;
    const HeadsOptions options{config_.heads,
                               kind == "decoder" ? AttentionMask::causal : AttentionMask::none,
                               {},
                               p.distance_scores};
    const Tensor weights = kind == "encoder" ? self_attention_weights(p.qkv, from, options)
                           : kind == "decoder"
                               ? self_attention_weights(p.qkv, to, options)
                               : cross_attention_weights(p.q, p.kv, to, from, options);
    add_maps(p.kind, p.layer, config_.heads, weights, kind == "encoder" ? source : target_in,
             kind == "decoder" ? target_in : source, maps);
  });
  return maps;
}

namespace {

// The entries j − row of a head, for the words j below `words`.
DoubleRow distance_scores_of_row(const Tensor& scores, const AttentionRow& row, size_t words) {
  const std::vector<DoubleRow> all = rows_of(scores);
  const int64_t first = (std::ssize(all) - 1) / 2 - row.row;
  DoubleRow found;
  for (size_t j = 0; j < words; ++j)
    found.push_back(all[static_cast<size_t>(first) + j][static_cast<size_t>(row.head)]);
  return found;
}

}  // namespace

ComputationSteps Transformer::explain(const TokenBatch& source, const TokenBatch& target_in,
                                      const AttentionRow& row) const {
  const int64_t A = config_.attention_size(shape_), d_k = A / config_.heads;
  const auto at = static_cast<size_t>(row.row);
  ComputationSteps steps;
  each_attention(source, target_in, [&](const AttentionProjections& p) {
    if (p.kind != row.kind || p.layer != row.layer) return;
    // x is several matrices of D columns side by side. Returns the columns of the head in matrix n.
    const auto part = [&](const Tensor& x, int64_t n) {
      return rows_of(columns(x, n * A + row.head * d_k, d_k));
    };
    const bool self = static_cast<bool>(p.qkv);
    const DoubleRow q = self ? part(p.qkv, 0)[at] : part(p.q, 0)[at];
    std::vector<DoubleRow> keys = self ? part(p.qkv, 1) : part(p.kv, 0);
    std::vector<DoubleRow> values = self ? part(p.qkv, 2) : part(p.kv, 1);
    if (row.kind == "decoder") {  // the decoder masks later words
      keys.resize(at + 1);
      values.resize(at + 1);
    }
    DoubleRow distances;
    if (p.distance_scores) distances = distance_scores_of_row(p.distance_scores, row, keys.size());
    steps = scaled_dot_steps(q, keys, values, distances);
  });
  return steps;
}

}  // namespace fovea
