#include <algorithm>
#include <iterator>
#include <mutex>

#include "attention/attention_steps.h"
#include "models/transformer.h"
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

constexpr int32_t kStart = 1;

struct State : DecoderState {
  std::shared_ptr<IdleMemories> home;
  std::unique_ptr<DecoderMemory> memory;

  ~State() override {
    if (memory) home->give_back(std::move(memory));
  }
};

DecoderMemory& memory_of(DecoderState& state) { return *static_cast<State&>(state).memory; }

}  // namespace

Tensor DecoderLayer::step(const Tensor& y, int64_t number, DecoderMemory& memory) const {
  const Tensor a = add_1(y, [&](const Tensor& h) {
    const Tensor qkv = linear(h, attend_self.W_QKV, attend_self.b_QKV, OutputType::activation);
    return attend_self.W_O(memory.attend_words(number, qkv));
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
    state->memory =
        decoder_memory({std::ssize(decoder_layers), config_.attention_size(shape_), config_.heads},
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
  return {words, static_cast<int32_t>(position), embed_target.positions(position + 1)};
}

Tensor Transformer::compute_step(const DecoderMemory::Rows& in, const Tensor& P,
                                 DecoderMemory& memory) const {
  Tensor y = embed_target.embed_at(in.words, in.places, P);
  for (size_t i = 0; i < decoder_layers.size(); ++i)
    y = decoder_layers[i].step(y, static_cast<int64_t>(i), memory);
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
  const std::vector<int32_t> begin(static_cast<size_t>(memory.steps() == 0 ? rows : 0), kStart);
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
  Tensor x = embed_source(source.ids, from);
  for (size_t i = 0; i < encoder_layers.size(); ++i) {
    const EncoderLayer& layer = encoder_layers[i];
    visit({"encoder",
           static_cast<int64_t>(i),
           {},
           {},
           layer.attend.project(input_of(layer.add_1, x))});
    x = layer(x, from);
  }
  const Tensor memory = final_norms.empty() ? x : final_norms[0](x);
  Tensor y = embed_target(target_in.ids, to);
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    const DecoderLayer& layer = decoder_layers[i];
    const auto number = static_cast<int64_t>(i);
    visit({"decoder", number, {}, {}, layer.attend_self.project(input_of(layer.add_1, y))});
    const Tensor a = layer.add_1(
        y, [&](const Tensor& h) { return layer.attend_self(h, to, AttentionMask::causal); });
    visit({"cross",
           number,
           layer.attend_source.queries(input_of(layer.add_2, a)),
           layer.attend_source.keys_and_values(memory),
           {}});
    y = layer(y, to, memory, from);
  }
}

std::vector<std::vector<AttentionMap>> Transformer::attention(const TokenBatch& source,
                                                              const TokenBatch& target_in) const {
  const SentenceOffsets from = SentenceOffsets::of(source.offsets, store_.device());
  const SentenceOffsets to = SentenceOffsets::of(target_in.offsets, store_.device());
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  const HeadsOptions everywhere{config_.heads, AttentionMask::none, {}};
  const HeadsOptions back{config_.heads, AttentionMask::causal, {}};
  each_attention(source, target_in, [&](const AttentionProjections& p) {
    const std::string_view kind = p.kind;
    const Tensor weights = kind == "encoder" ? self_attention_weights(p.qkv, from, everywhere)
                           : kind == "decoder"
                               ? self_attention_weights(p.qkv, to, back)
                               : cross_attention_weights(p.q, p.kv, to, from, everywhere);
    add_maps(p.kind, p.layer, config_.heads, weights, kind == "encoder" ? source : target_in,
             kind == "decoder" ? target_in : source, maps);
  });
  return maps;
}

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
    steps = scaled_dot_steps(q, keys, values);
  });
  return steps;
}

}  // namespace fovea
