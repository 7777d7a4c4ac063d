#include <algorithm>
#include <iterator>
#include <mutex>

#include "attention/steps.h"
#include "models/transformer.h"
#include "ops/embedding.h"
#include "ops/shape.h"
#include "tensor/tape.h"

// The Transformer one word at a time: keys and values of earlier words are remembered, those of
// the source are computed once per sentence.
namespace fovea {

// Memories that nobody uses. A GPU records its steps with a memory and can do them again for the
// next sentences.
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
    const Tensor qkv = linear(h, attend_self.W_QKV, attend_self.b_QKV, Give::activation);
    return attend_self.W_O(memory.attend_words(number, qkv));
  });
  const Tensor b = add_2(a, [&](const Tensor& h) {
    const Tensor q = linear(h, attend_source.W_Q, attend_source.b_Q, Give::activation);
    return attend_source.W_O(memory.attend_source(number, q));
  });
  return add_3(b, feed_forward);
}

// What the decoder's layers look at, per layer [source tokens, 2D].
std::vector<Tensor> Transformer::source_kv(const Tokens& source) const {
  const Packing from = Packing::of(source.offsets, store_.device());
  const Tensor memory = encode(embed_source(source.ids, from), from);
  std::vector<Tensor> kv;
  for (const DecoderLayer& layer : decoder_layers) {
    const MultiHeadAttention& attend = layer.attend_source;
    kv.push_back(linear(memory, attend.W_KV, attend.b_KV, Give::activation));
  }
  return kv;
}

std::unique_ptr<DecoderState> Transformer::start(const Tokens& source) const {
  auto state = std::make_unique<State>();
  state->home = idle_;
  state->memory = idle_->take();
  if (!state->memory)
    state->memory =
        decoder_memory({std::ssize(decoder_layers), config_.size, config_.heads}, store_.device());
  state->memory->start(source_kv(source), source.offsets);
  return state;
}

bool Transformer::joins() const { return std::holds_alternative<Cpu>(store_.device()); }

void Transformer::join(DecoderState& state, const Tokens& source) const {
  memory_of(state).join(source_kv(source), source.offsets);
}

DecoderMemory::Next Transformer::next(const DecoderMemory& memory,
                                      std::span<const int32_t> words) const {
  const int64_t place = std::min(memory.steps(), max_length());
  return {words, static_cast<int32_t>(place), embed_target.positions(place + 1)};
}

Tensor Transformer::compute_step(const DecoderMemory::Rows& in, const Tensor& P,
                                 DecoderMemory& memory) const {
  Tensor y = embed(embed_target.E, P, {in.words, in.places, embed_target.scale, {}});
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

bool Transformer::steer(DecoderState& state, const Steering& rules) const {
  return memory_of(state).steer(rules);
}

const Steered& Transformer::step_ahead(DecoderState& state, int64_t rows) const {
  DecoderMemory& memory = memory_of(state);
  const std::vector<int32_t> begin(static_cast<size_t>(memory.steps() == 0 ? rows : 0), kStart);
  const DecoderMemory::Next in = next(memory, begin);
  return memory.step_ahead(rows, in, [&](const DecoderMemory::Rows& these) {
    return compute_step(these, in.constant, memory);
  });
}

void Transformer::reorder(DecoderState& state, std::span<const int32_t> parents) const {
  memory_of(state).reorder(parents);
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

void Transformer::each_attention(const Tokens& source, const Tokens& target_in,
                                 const std::function<void(const Asked&)>& visit) const {
  const Packing from = Packing::of(source.offsets, store_.device());
  const Packing to = Packing::of(target_in.offsets, store_.device());
  // What a sub-layer's function sees is x after post-norm, LayerNorm(x) before it in pre-norm.
  auto seen = [&](const SubLayer& add, const Tensor& x) {
    return add.place == NormPlace::pre ? add.norm(x) : x;
  };
  Tensor x = embed_source(source.ids, from);
  for (size_t i = 0; i < encoder_layers.size(); ++i) {
    const EncoderLayer& layer = encoder_layers[i];
    visit({"encoder", static_cast<int64_t>(i), {}, {}, layer.attend.project(seen(layer.add_1, x))});
    x = layer(x, from);
  }
  const Tensor memory = final_norms.empty() ? x : final_norms[0](x);
  Tensor y = embed_target(target_in.ids, to);
  for (size_t i = 0; i < decoder_layers.size(); ++i) {
    const DecoderLayer& layer = decoder_layers[i];
    const auto number = static_cast<int64_t>(i);
    visit({"decoder", number, {}, {}, layer.attend_self.project(seen(layer.add_1, y))});
    const Tensor a =
        layer.add_1(y, [&](const Tensor& h) { return layer.attend_self(h, to, Look::back); });
    visit({"cross",
           number,
           layer.attend_source.queries(seen(layer.add_2, a)),
           layer.attend_source.keys_and_values(memory),
           {}});
    y = layer(y, to, memory, from);
  }
}

std::vector<std::vector<AttentionMap>> Transformer::attention(const Tokens& source,
                                                              const Tokens& target_in) const {
  const Packing from = Packing::of(source.offsets, store_.device());
  const Packing to = Packing::of(target_in.offsets, store_.device());
  std::vector<std::vector<AttentionMap>> maps(static_cast<size_t>(source.sentences()));
  const HeadsOptions everywhere{config_.heads, Look::everywhere, {}};
  const HeadsOptions back{config_.heads, Look::back, {}};
  each_attention(source, target_in, [&](const Asked& asked) {
    const std::string_view kind = asked.kind;
    const Tensor weights = kind == "encoder" ? self_attention_weights(asked.qkv, from, everywhere)
                           : kind == "decoder"
                               ? self_attention_weights(asked.qkv, to, back)
                               : cross_attention_weights(asked.q, asked.kv, to, from, everywhere);
    add_maps(asked.kind, asked.layer, config_.heads, weights,
             kind == "encoder" ? source : target_in, kind == "decoder" ? target_in : source, maps);
  });
  return maps;
}

Steps Transformer::explain(const Tokens& source, const Tokens& target_in,
                           const AttentionRow& row) const {
  const int64_t D = config_.size, d_k = D / config_.heads;
  const auto at = static_cast<size_t>(row.row);
  Steps steps;
  each_attention(source, target_in, [&](const Asked& asked) {
    if (asked.kind != row.kind || asked.layer != row.layer) return;
    // The head's part of the n-th of the matrices that stand side by side in x.
    const auto part = [&](const Tensor& x, int64_t n) {
      return rows_of(columns(x, n * D + row.head * d_k, d_k));
    };
    const bool self = static_cast<bool>(asked.qkv);
    const Row q = self ? part(asked.qkv, 0)[at] : part(asked.q, 0)[at];
    std::vector<Row> keys = self ? part(asked.qkv, 1) : part(asked.kv, 0);
    std::vector<Row> values = self ? part(asked.qkv, 2) : part(asked.kv, 1);
    if (row.kind == "decoder") {  // words to come are not looked at
      keys.resize(at + 1);
      values.resize(at + 1);
    }
    steps = scaled_dot_steps(q, keys, values);
  });
  return steps;
}

}  // namespace fovea
