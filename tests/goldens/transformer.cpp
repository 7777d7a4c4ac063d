#include "models/transformer.h"

#include <algorithm>
#include <cmath>

#include "attention/attention_steps.h"
#include "goldens/case.h"
#include "nn/positions.h"
#include "ops/shape.h"
#include "ops/softmax.h"
#include "support/network_settings.h"

namespace fovea::goldens {
namespace {

ModelConfig config_of(const Case& c, const std::string& inner_bias) {
  ModelConfig config;
  config.encoder_layers = config.decoder_layers = 2;
  auto& own = transformer_of(config);
  own.heads = static_cast<int64_t>(c.number("in.heads"));
  own.inner = c.shape("param." + inner_bias)[0];
  config.dropout = 0;
  const std::string& name = c.name();
  if (name.find("pre") != std::string::npos) own.norm = NormPlace::pre;
  if (name.find("gelu") != std::string::npos) own.activation = Function::gelu;
  if (name.find("silu") != std::string::npos) own.activation = Function::silu;
  return config;
}

void assign(Case& c, const std::string& name, const MultiHeadAttention& attend) {
  c.assign(name + "in_proj_weight", attend.W_QKV);
  c.assign(name + "in_proj_bias", attend.b_QKV);
  c.assign(name + "out_proj.weight", attend.W_O.W);
  c.assign(name + "out_proj.bias", attend.W_O.b);
}
void assign(Case& c, const std::string& name, const FeedForward& f) {
  c.assign(name + "linear1.weight", f.W_1.W);
  c.assign(name + "linear1.bias", f.W_1.b);
  c.assign(name + "linear2.weight", f.W_2.W);
  c.assign(name + "linear2.bias", f.W_2.b);
}
void assign(Case& c, const std::string& name, const LayerNorm& norm) {
  c.assign(name + ".weight", norm.g);
  c.assign(name + ".bias", norm.b);
}
void assign(Case& c, const std::string& name, const EncoderLayer& layer) {
  assign(c, name + "self_attn.", layer.attend);
  assign(c, name, layer.feed_forward);
  assign(c, name + "norm1", layer.add_1.norm);
  assign(c, name + "norm2", layer.add_2.norm);
}
void assign(Case& c, const std::string& name, const DecoderLayer& layer) {
  assign(c, name + "self_attn.", *layer.attend_self);
  assign(c, name + "multihead_attn.", layer.attend_source);
  assign(c, name, layer.feed_forward);
  assign(c, name + "norm1", layer.add_1.norm);
  assign(c, name + "norm2", layer.add_2.norm);
  assign(c, name + "norm3", layer.add_3.norm);
}

struct Store : ParameterStore {
  using ParameterStore::ParameterStore;
  void ready() {
    allocate(1);
    allocate_gradients();
  }
};

// Compares the steps that `fovea show --explain` prints for each query, arranged as in the case.
void explained_steps(Case& c) {
  const int64_t B = c.shape("in.q")[0], T = c.shape("in.q")[1], S = c.shape("in.k")[1];
  const int64_t d_v = c.shape("in.v")[2];
  const std::vector<DoubleRow> q = rows_of(c.of({B * T, c.shape("in.q")[2]}, c.values("in.q")));
  const std::vector<DoubleRow> k = rows_of(c.of({B * S, c.shape("in.k")[2]}, c.values("in.k")));
  const std::vector<DoubleRow> v = rows_of(c.of({B * S, d_v}, c.values("in.v")));
  const auto cells = static_cast<size_t>(B * T * S), width = static_cast<size_t>(d_v);
  DoubleRow score(cells, 0), scaled = score, weights = score, weighted(cells * width, 0),
                             sum(static_cast<size_t>(B * T) * width, 0);
  for (int64_t row = 0; row < B * T; ++row) {
    if (c.values("in.tgt_mask")[static_cast<size_t>(row)] == 0) continue;
    std::vector<size_t> kept;  // words of this sentence
    std::vector<DoubleRow> keys, values;
    for (int64_t j = row / T * S; j < (row / T + 1) * S; ++j) {
      if (c.values("in.src_mask")[static_cast<size_t>(j)] == 0) continue;
      kept.push_back(static_cast<size_t>(row * S + j % S));
      keys.push_back(k[static_cast<size_t>(j)]);
      values.push_back(v[static_cast<size_t>(j)]);
    }
    const auto steps = scaled_dot_steps(q[static_cast<size_t>(row)], keys, values).all;
    for (size_t n = 0; n < kept.size(); ++n) {  // q, k_j, q·k_j, ÷ √d_k, α_j, v_j, α_j v_j, Σ
      score[kept[n]] = steps[2].rows[n][0];
      scaled[kept[n]] = steps[3].rows[n][0];
      weights[kept[n]] = steps[4].rows[n][0];
      std::ranges::copy(steps[6].rows[n],
                        weighted.begin() + static_cast<std::ptrdiff_t>(kept[n] * width));
    }
    std::ranges::copy(steps[7].rows[0], sum.begin() + row * d_v);
  }
  c.expect("out.score", c.of({B, T, S}, score));
  c.expect("out.scaled", c.of({B, T, S}, scaled));
  c.expect("out.weights", c.of({B, T, S}, weights));
  c.expect("out.weighted", c.of({B, T, S, d_v}, weighted));
  c.expect("out.main", c.of({B, T, d_v}, sum));
}

void sdpa_steps(Case& c) {
  explained_steps(c);
  const int64_t B = c.shape("in.q")[0], S = c.shape("in.k")[1];
  const Tensor q = c.tracked("in.q"), k = c.tracked("in.k"), v = c.tracked("in.v");
  const int64_t T = q.size(1), d_k = q.size(2), d_v = v.size(2);
  std::vector<double> keep, rows;
  for (int64_t b = 0; b < B; ++b)
    for (int64_t t = 0; t < T; ++t)
      for (int64_t s = 0; s < S; ++s) {
        keep.push_back(c.values("in.src_mask")[b * S + s]);
        rows.push_back(c.values("in.tgt_mask")[b * T + t] * keep.back());
      }
  const Tensor kept = c.of({B, T, S}, keep), shown = c.of({B, T, S}, rows);
  Tape tape;
  const Tensor score = matmul(q, transpose(k));
  const Tensor scaled = score * (1 / std::sqrt(static_cast<double>(d_k)));
  const Tensor weights = softmax(scaled, kept);
  const Tensor y = matmul(weights, v);
  const Tensor weighted = (weights * shown).view({B, T, S, 1}) * v.view({B, 1, S, d_v});
  c.expect("out.score", score * shown);
  c.expect("out.scaled", scaled * shown);
  c.expect("out.weights", weights * shown);
  c.expect("out.weighted", weighted);
  c.expect("out.main", y * c.of({B, T, 1}, c.values("in.tgt_mask")));
  c.backward(tape, y);
  c.expect("grad.in.q", q.grad());
  c.expect("grad.in.k", k.grad());
  c.expect("grad.in.v", v.grad());
}

// Compares the weights of a packed batch with the padded [B, heads, T, S] of the file.
void expect_weights(Case& c, const Tensor& packed, const std::string& row_mask) {
  const Shape& shape = c.shape("out.weights");
  const int64_t H = shape[1], T = shape[2], S = shape[3];
  const std::vector<int32_t> r = c.offsets(row_mask), s = c.offsets("in.src_mask");
  const std::vector<double> found = packed.values();
  std::vector<double> full(static_cast<size_t>(shape.elements()), 0.0);
  size_t at = 0;
  for (int64_t b = 0; b + 1 < std::ssize(r); ++b)
    for (int64_t h = 0; h < H; ++h)
      for (int64_t i = 0; i < r[b + 1] - r[b]; ++i)
        for (int64_t j = 0; j < s[b + 1] - s[b]; ++j)
          full[static_cast<size_t>(((b * H + h) * T + i) * S + j)] = found[at++];
  c.expect("out.weights", full);
}

void mha(Case& c) {
  const bool cross = c.has("in.memory");
  const int64_t D = c.shape("in.x")[2], heads = static_cast<int64_t>(c.number("in.heads"));
  const std::string mask = cross ? "in.tgt_mask" : "in.src_mask";
  const AttentionMask attention =
      c.name() == "mha_causal" ? AttentionMask::causal : AttentionMask::none;
  Store store(c.type(), c.device());
  const MultiHeadAttention attend(ParameterScope{store, ""}, {D, heads});
  store.ready();
  assign(c, "", attend);
  const SentenceOffsets queries = c.packing(mask), keys = c.packing("in.src_mask");
  const Tensor x = c.packed("in.x", mask);
  Tape tape;
  if (cross) {
    const Tensor memory = c.packed("in.memory", "in.src_mask");
    const Tensor y = attend(x, queries, memory, keys);
    expect_weights(c,
                   cross_attention_weights(attend.queries(x), attend.keys_and_values(memory),
                                           queries, keys, {heads, attention, {}}),
                   mask);
    c.expect_kept("out.main", mask, y);
    c.backward(tape, y, mask);
    c.expect_kept("grad.in.memory", "in.src_mask", memory.grad());
  } else {
    const Tensor y = attend(x, queries, attention);
    expect_weights(c, self_attention_weights(attend.project(x), queries, {heads, attention, {}}),
                   mask);
    c.expect_kept("out.main", mask, y);
    c.backward(tape, y, mask);
  }
  c.expect_kept("grad.in.x", mask, x.grad());
  c.expect_gradients();
}

void norm_case(Case& c) {
  Store store(c.type(), c.device());
  const LayerNorm norm(ParameterScope{store, ""}, c.shape("in.x")[2]);
  store.ready();
  c.assign("weight", norm.g);
  c.assign("bias", norm.b);
  const Tensor x = c.tracked("in.x");
  Tape tape;
  const Tensor y = layer_norm(x, norm.g, norm.b, c.number("in.eps"));
  c.expect("out.main", y);
  c.backward(tape, y);
  c.expect("grad.in.x", x.grad());
  c.expect_gradients();
}

void encoder_layer(Case& c) {
  ModelConfig config = config_of(c, "linear1.bias");
  config.size = c.shape("in.x")[2];
  Store store(c.type(), c.device());
  const EncoderLayer layer(ParameterScope{store, ""}, config, transformer_of(config));
  store.ready();
  assign(c, "", layer);
  const Tensor x = c.packed("in.x", "in.src_mask");
  Tape tape;
  const Tensor y = layer(x, c.packing("in.src_mask"));
  c.expect_kept("out.main", "in.src_mask", y);
  c.backward(tape, y, "in.src_mask");
  c.expect_kept("grad.in.x", "in.src_mask", x.grad());
  c.expect_gradients();
}

void decoder_layer(Case& c) {
  ModelConfig config = config_of(c, "linear1.bias");
  config.size = c.shape("in.x")[2];
  Store store(c.type(), c.device());
  const DecoderLayer layer(ParameterScope{store, ""}, config, transformer_of(config));
  store.ready();
  assign(c, "", layer);
  const Tensor x = c.packed("in.x", "in.tgt_mask");
  const Tensor memory = c.packed("in.memory", "in.src_mask");
  Tape tape;
  const Tensor y = layer(x, c.packing("in.tgt_mask"), memory, c.packing("in.src_mask"));
  c.expect_kept("out.main", "in.tgt_mask", y);
  c.backward(tape, y, "in.tgt_mask");
  c.expect_kept("grad.in.x", "in.tgt_mask", x.grad());
  c.expect_kept("grad.in.memory", "in.src_mask", memory.grad());
  c.expect_gradients();
}

void assign_stacks(Case& c, const Transformer& model) {
  for (size_t i = 0; i < model.encoder_layers.size(); ++i)
    assign(c, "encoder.layers." + std::to_string(i) + ".", model.encoder_layers[i]);
  for (size_t i = 0; i < model.decoder_layers.size(); ++i)
    assign(c, "decoder.layers." + std::to_string(i) + ".", model.decoder_layers[i]);
  if (!model.final_norms.empty()) {
    assign(c, "encoder.norm", model.final_norms[0]);
    assign(c, "decoder.norm", model.final_norms[1]);
  }
}

void transformer_stacks(Case& c) {
  ModelConfig config = config_of(c, "encoder.layers.0.linear1.bias");
  config.size = c.shape("in.src")[2];
  transformer_of(config).final_norm = c.name() == "transformer_post_final";
  config.source_words = config.target_words = 4;
  Transformer model(config, transformer_of(config), c.type(), c.device());
  model.parameters().allocate(1);
  model.parameters().allocate_gradients();
  assign_stacks(c, model);
  const SentenceOffsets from = c.packing("in.src_mask"), to = c.packing("in.tgt_mask");
  const Tensor src = c.packed("in.src", "in.src_mask"), tgt = c.packed("in.tgt", "in.tgt_mask");
  Tape tape;
  const Tensor memory = model.encode(src, from);
  const Tensor y = model.decode(tgt, to, memory, from);
  c.expect_kept("out.memory", "in.src_mask", memory);
  c.expect_kept("out.main", "in.tgt_mask", y);
  c.backward(tape, y, "in.tgt_mask");
  c.expect_kept("grad.in.src", "in.src_mask", src.grad());
  c.expect_kept("grad.in.tgt", "in.tgt_mask", tgt.grad());
  c.expect_gradients();
}

std::vector<int32_t> kept_ids(const Case& c, const std::string& key, const std::string& mask) {
  const auto rows = c.kept(key, mask);
  return {rows.begin(), rows.end()};
}

void transformer_model(Case& c) {
  ModelConfig config = config_of(c, "encoder.layers.0.linear1.bias");
  config.size = c.shape("param.E_src")[1];
  config.source_words = c.shape("param.E_src")[0];
  config.target_words = c.shape("param.E_tgt")[0];
  config.tied = TiedEmbeddings::output;
  Transformer model(config, transformer_of(config), c.type(), c.device());
  model.parameters().allocate(1);
  model.parameters().allocate_gradients();
  c.assign("E_src", model.embed_source.E);
  c.assign("E_tgt", model.embed_target.E);
  assign_stacks(c, model);
  const SentenceOffsets from = c.packing("in.src_mask"), to = c.packing("in.tgt_mask");
  const std::vector<int32_t> source = c.offsets("in.src_mask"), target = c.offsets("in.tgt_mask");
  const auto src = kept_ids(c, "in.src", "in.src_mask"), in = kept_ids(c, "in.y_in", "in.tgt_mask"),
             out = kept_ids(c, "in.y_out", "in.tgt_mask");
  const Tensor memory = model.encode(model.embed_source(src, from), from);
  c.expect_kept("out.memory", "in.src_mask", memory);
  const Tensor y = model.decode(model.embed_target(in, to), to, memory, from);
  c.expect_kept("out.logits", "in.tgt_mask", model.logits(y));
  Tape tape;
  const BatchLoss loss =
      model.loss({{src, source}, {in, target}, out}, c.number("in.label_smoothing"));
  const double words = static_cast<double>(out.size());
  c.expect("out.main", std::vector<double>{loss.loss.values()[0] / words});
  tape.backward(loss.loss, c.number("in.loss_weight") / words);
  c.expect_gradients();
}

void positions(Case& c) {
  const SinusoidLayout waves = c.name() == "positions_interleaved" ? SinusoidLayout::interleaved
                               : c.name() == "positions_half"      ? SinusoidLayout::half
                                                                   : SinusoidLayout::half_m1;
  const auto rows = c.integers("in.positions");
  const int32_t last = *std::max_element(rows.begin(), rows.end());
  const int64_t D = static_cast<int64_t>(c.number("in.D"));
  const Tensor table = sinusoids(waves, last + 1, D, c.type(), c.device());
  std::vector<double> found;
  for (const int32_t row : rows) {
    const auto values = table.window(row, 1).values();
    found.insert(found.end(), values.begin(), values.end());
  }
  c.expect("out.main", found);
}

}  // namespace

void add_transformer_cases(std::map<std::string, Run>& cases) {
  cases["sdpa_steps"] = sdpa_steps;
  for (const char* name : {"mha_self", "mha_causal", "mha_cross"}) cases[name] = mha;
  cases["layer_norm"] = norm_case;
  for (const char* norm : {"post", "pre"})
    for (const char* f : {"relu", "gelu", "silu"})
      cases[std::string("encoder_layer_") + norm + "_" + f] = encoder_layer;
  cases["decoder_layer_post_relu"] = cases["decoder_layer_pre_relu"] = decoder_layer;
  for (const char* name : {"transformer_post", "transformer_post_final", "transformer_pre"})
    cases[name] = transformer_stacks;
  cases["transformer_model"] = transformer_model;
  for (const char* name : {"positions_interleaved", "positions_half", "positions_half_m1"})
    cases[name] = positions;
}

}  // namespace fovea::goldens
