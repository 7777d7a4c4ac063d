#include "models/intervention.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/recurrent_model.h"
#include "models/transformer.h"
#include "ops/recurrent.h"
#include "ops/shape.h"
#include "support/gradient_check.h"
#include "support/network_settings.h"
#include "support/sentences.h"

namespace fovea {
namespace {

using namespace testing;

// One pair: five pieces of source with </s>, three words of target and </s>.
Sentences pair_of() {
  Sentences s;
  s.add({3, 4, 5, 6}, {7, 8, 4});
  return s;
}
constexpr int64_t kPieces = 5, kSteps = 4;

ModelConfig transformer(NormPlace norm = NormPlace::pre) {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 2;
  c.size = 8, transformer_of(c).heads = 2, transformer_of(c).inner = 6;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  c.dropout = 0;
  transformer_of(c).norm = norm;
  return c;
}

ModelConfig like_t5() {
  ModelConfig c = transformer();
  auto& own = transformer_of(c);
  own.positions = Positions::relative, own.norm_type = NormType::rms, own.gated = true;
  own.head_size = 3;
  return c;
}
std::vector<double> distance_scores() {  // of 32 buckets and two heads
  std::vector<double> scores;
  for (int i = 0; i < 64; ++i) scores.push_back(std::sin(i * i));
  return scores;
}
ModelConfig with_ssru() {
  ModelConfig c = transformer();
  transformer_of(c).decoder_layer = DecoderLayerType::ssru;
  return c;
}

ModelConfig recurrent(const std::string& kind, DecoderForm decoder) {
  ModelConfig c;
  RecurrentConfig& own = c.network.emplace<RecurrentConfig>();
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 4, own.encoder_size = 2, own.embedding = 3, own.readout = 5;
  c.tied = TiedEmbeddings::none;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  c.dropout = 0;
  own.decoder = decoder;
  own.attention.kind = kind;
  own.attention.inner = 3, own.attention.window = 3, own.attention.gaussians = 2;
  return c;
}

template <class Use>
void each_recurrent(Use use) {
  for (const AttentionMechanism& mechanism : attention_mechanisms())
    for (const DecoderForm decoder : {DecoderForm::bahdanau, DecoderForm::luong}) {
      const std::string kind = mechanism.about.name;
      if (kind == "none") continue;
      SCOPED_TRACE(kind + (decoder == DecoderForm::luong ? ", luong" : ", bahdanau"));
      use(*make_model(recurrent(kind, decoder), 3, ElementType::f64), kind);
    }
}

double log_likelihood(const Model& model, const Sentences& s) {
  return -model.loss({s.sources(), s.targets(), s.out}, 0).loss.values()[0];
}

std::vector<AttentionMap> maps_of(const Model& model, const Sentences& s) {
  return model.as<Attentive>()->attention(s.sources(), s.targets()).front();
}

double row_sum(const AttentionMap& map, int64_t row) {
  const auto at = map.weights.begin() + row * map.cols;
  return std::accumulate(at, at + map.cols, 0.0);
}

// log p of the target, fed one word at a time.
double step_by_step(const Model& model, const Sentences& s) {
  const Decodable& decoder = *model.as<Decodable>();
  const auto state = decoder.start(s.sources());
  double sum = 0;
  for (size_t t = 0; t < s.in.size(); ++t) {
    const std::vector<double> e = decoder.step(*state, std::span(s.in).subspan(t, 1)).values();
    double norm = 0;
    for (const double x : e) norm += std::exp(x);
    sum += e[static_cast<size_t>(s.out[t])] - std::log(norm);
  }
  return sum;
}

// All attention of one step on one source position.
WhatIf::Row all_on(int64_t step, int64_t position) {
  WhatIf::Row row{step};
  row.weights.assign(kPieces, 0);
  row.weights[static_cast<size_t>(position)] = 1;
  return row;
}

TEST(Intervention, AnEmptyInterventionChangesNoBit) {
  const Sentences s = pair_of();
  for (const ModelConfig& config :
       {transformer(NormPlace::pre), transformer(NormPlace::post), like_t5(), with_ssru()}) {
    const auto model = make_model(config, 3);
    const auto same = model->as<Explainable>()->with_intervention({});
    const auto before = maps_of(*model, s), after = maps_of(*same, s);
    ASSERT_EQ(before.size(), after.size());
    for (const AttentionMap& map : before) {
      const auto twin = std::ranges::find_if(after, [&](const AttentionMap& m) {
        return m.kind == map.kind && m.layer == map.layer && m.head == map.head;
      });
      ASSERT_NE(twin, after.end());
      EXPECT_EQ(map.weights, twin->weights);
    }
    EXPECT_EQ(log_likelihood(*model, s), log_likelihood(*same, s));
  }
  each_recurrent([&](const Model& model, const std::string&) {
    const auto same = model.as<Explainable>()->with_intervention({});
    EXPECT_EQ(maps_of(model, s).front().weights, maps_of(*same, s).front().weights);
    EXPECT_EQ(log_likelihood(model, s), log_likelihood(*same, s));
  });
}

TEST(Intervention, StepsAgreeWithForcedDecoding) {
  const Sentences s = pair_of();
  WhatIf intervention{.masked = {1}, .silent = {{"cross", 0, 0}}, .forced = {all_on(2, 3)}};
  for (const ModelConfig& config : {transformer(), with_ssru(), like_t5()}) {
    const auto model = make_model(config, 3, ElementType::f64);
    const auto changed = model->as<Explainable>()->with_intervention(intervention);
    EXPECT_NEAR(step_by_step(*changed, s), log_likelihood(*changed, s), 1e-9);
    EXPECT_GT(std::abs(log_likelihood(*changed, s) - log_likelihood(*model, s)), 1e-6);
  }
  intervention.silent.clear();
  each_recurrent([&](const Model& m, const std::string&) {
    const auto changed = m.as<Explainable>()->with_intervention(intervention);
    EXPECT_NEAR(step_by_step(*changed, s), log_likelihood(*changed, s), 1e-9);
    EXPECT_GT(std::abs(log_likelihood(*changed, s) - log_likelihood(m, s)), 1e-6);
  });
}

void expect_rows_keep_words(const ModelConfig& config) {
  const Sentences s = pair_of();
  const auto model = make_model(config, 3, ElementType::f64);
  const auto changed = model->as<Explainable>()->with_intervention({.masked = {1}});
  const Decodable& decoder = *changed->as<Decodable>();
  const auto state = decoder.start(s.sources());
  decoder.step(*state, std::vector<int32_t>{1});
  decoder.reorder(*state, std::vector<int32_t>{0, 0});
  decoder.step(*state, std::vector<int32_t>{7, 8});
  decoder.reorder(*state, std::vector<int32_t>{1, 0});
  const Tensor both = decoder.step(*state, std::vector<int32_t>{4, 5});
  const std::vector<std::vector<int32_t>> fed{{1, 8, 4}, {1, 7, 5}};
  for (int64_t i = 0; i < 2; ++i) {
    const auto alone = decoder.start(s.sources());
    std::vector<double> last;
    for (const int32_t word : fed[static_cast<size_t>(i)])
      last = decoder.step(*alone, std::vector{word}).values();
    const std::vector<double> found = both.window(i, 1).values();
    for (size_t k = 0; k < last.size(); ++k) EXPECT_NEAR(found[k], last[k], 1e-9);
  }
}

TEST(Intervention, ReorderedRowsKeepTheirWords) {
  expect_rows_keep_words(transformer());
  expect_rows_keep_words(with_ssru());
  expect_rows_keep_words(like_t5());
}

TEST(Intervention, MaskedWordsHaveNoWeightAndTheRestSumsToOne) {
  const Sentences s = pair_of();
  const auto model = make_model(transformer(), 3);
  for (const AttentionMap& map :
       maps_of(*model->as<Explainable>()->with_intervention({.masked = {1, 3}}), s))
    for (int64_t i = 0; i < map.rows; ++i) {
      EXPECT_NEAR(row_sum(map, i), 1, 1e-6);
      if (map.kind == "decoder") continue;
      EXPECT_EQ(map.weights[i * map.cols + 1], 0);
      EXPECT_EQ(map.weights[i * map.cols + 3], 0);
      EXPECT_GT(map.weights[i * map.cols + 2], 0);
    }
  each_recurrent([&](const Model& m, const std::string& kind) {
    const AttentionMap map =
        maps_of(*m.as<Explainable>()->with_intervention({.masked = {1, 3}}), s).front();
    for (int64_t i = 0; i < map.rows; ++i) {
      EXPECT_EQ(map.weights[i * map.cols + 1], 0);
      EXPECT_EQ(map.weights[i * map.cols + 3], 0);
      EXPECT_NEAR(row_sum(map, i), kind == "local-p" ? row_sum(map, i) : 1, 1e-6);
    }
  });
}

// Without positions, masking a word equals removing it.
TEST(Intervention, MaskingAWordEqualsRemovingIt) {
  ModelConfig config = transformer();
  transformer_of(config).positions = Positions::none;
  const auto model = make_model(config, 3, ElementType::f64);
  Sentences without;
  without.add({3, 5, 6}, {7, 8, 4});
  const Sentences s = pair_of();
  EXPECT_NEAR(log_likelihood(*model->as<Explainable>()->with_intervention({.masked = {1}}), s),
              log_likelihood(*model, without), 1e-9);
  EXPECT_GT(std::abs(log_likelihood(*model, s) - log_likelihood(*model, without)), 1e-6);
}

// Only the first row is compared, because the mask has not yet changed its query.
TEST(Intervention, OtherWordsShareTheWeightOfTheMasked) {
  const Sentences s = pair_of();
  each_recurrent([&](const Model& model, const std::string& kind) {
    const AttentionMap before = maps_of(model, s).front();
    const AttentionMap after =
        maps_of(*model.as<Explainable>()->with_intervention({.masked = {2}}), s).front();
    if (const NamedSeries* choice = before.find(NamedSeries::Kind::distribution)) {
      std::vector<float> soft(choice->values.begin(), choice->values.begin() + kPieces);
      soft[2] = 0;
      const auto best = std::ranges::max_element(soft) - soft.begin();
      for (int64_t j = 0; j < kPieces; ++j) EXPECT_EQ(after.weights[j], j == best ? 1 : 0);
      return;
    }
    // local-p normalises before its Gaussian, which depends on the position: only ratios are equal.
    const double kept = kind == "local-p" ? after.weights[1] / before.weights[1]
                                          : 1 / (1 - double{before.weights[2]});
    for (int64_t j = 0; j < kPieces; ++j)
      EXPECT_NEAR(after.weights[j], j == 2 ? 0 : kept * before.weights[j], 1e-6) << j;
  });
}

// Silencing a head equals zeros in its columns of W_O.
TEST(Intervention, ASilentHeadContributesNothing) {
  const Sentences s = pair_of();
  for (const HeadName& name : {HeadName{"encoder", 1, 0}, {"decoder", 0, 1}, {"cross", 1, 1}}) {
    const auto model = make_model(transformer(), 3, ElementType::f64);
    const auto other = make_model(transformer(), 3, ElementType::f64);
    const auto& zeroed = dynamic_cast<const Transformer&>(*other);
    const auto layer = static_cast<size_t>(name.layer);
    const MultiHeadAttention& attend = name.kind == "encoder" ? zeroed.encoder_layers[layer].attend
                                       : name.kind == "decoder"
                                           ? *zeroed.decoder_layers[layer].attend_self
                                           : zeroed.decoder_layers[layer].attend_source;
    std::vector<double> W = attend.W_O.W.values();
    const int64_t D = 8, d_k = 4;
    for (int64_t k = 0; k < D * D; ++k)
      if (k % D / d_k == name.head) W[static_cast<size_t>(k)] = 0;
    attend.W_O.W.assign(W);
    const auto changed = model->as<Explainable>()->with_intervention({.silent = {name}});
    EXPECT_NEAR(log_likelihood(*changed, s), log_likelihood(*other, s), 1e-12);
    EXPECT_GT(std::abs(log_likelihood(*changed, s) - log_likelihood(*model, s)), 1e-9);
    for (const AttentionMap& map : maps_of(*changed, s)) {
      const bool it = map.kind == name.kind && map.layer == name.layer && map.head == name.head;
      EXPECT_NEAR(row_sum(map, 1), it ? 0 : 1, 1e-6);
    }
  }
  each_recurrent([&](const Model& model, const std::string&) {
    const AttentionMap map =
        maps_of(*model.as<Explainable>()->with_intervention({.silent = {{"cross", 0, 0}}}), s)
            .front();
    for (const float w : map.weights) EXPECT_EQ(w, 0);
  });
}

// Computes the decoder's only layer in the test: at the forced step every head reads V_j; at other
// steps attention is unchanged.
TEST(Intervention, AForcedStepReadsTheGivenWord) {
  const Sentences s = pair_of();
  ModelConfig config = transformer();
  config.decoder_layers = 1;
  const auto model = make_model(config, 3, ElementType::f64);
  const auto& t = dynamic_cast<const Transformer&>(*model);
  const SentenceOffsets from = SentenceOffsets::of(s.source_offsets),
                        to = SentenceOffsets::of(s.offsets);
  const Tensor memory = t.encode(t.embed_source(s.source, from), from);
  const DecoderLayer& layer = t.decoder_layers[0];
  const int64_t step = 2, place = 3, D = config.size;
  const Tensor y = t.embed_target(s.in, to);
  const Tensor a = layer.add_1(
      y, [&](const Tensor& h) { return (*layer.attend_self)(h, to, AttentionMask::causal); });
  const Tensor b = layer.add_2(a, [&](const Tensor& h) {
    const Tensor V = columns(layer.attend_source.keys_and_values(memory), D, D);
    const Tensor read = layer.attend_source.W_O(rows(V, place, 1));
    const Tensor usual = layer.attend_source(h, to, memory, from);
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < kSteps; ++i) parts.push_back(i == step ? read : rows(usual, i, 1));
    return concat_rows(parts);
  });
  const std::vector<double> expected =
      t.logits(t.final_norms[1](layer.add_3(b, layer.feed_forward))).values();

  const auto changed =
      model->as<Explainable>()->with_intervention({.forced = {all_on(step, place)}});
  const Decodable& decoder = *changed->as<Decodable>();
  const auto state = decoder.start(s.sources());
  for (size_t i = 0; i < kSteps; ++i) {
    const auto found = decoder.step(*state, std::span(s.in).subspan(i, 1)).values();
    for (size_t k = 0; k < found.size(); ++k)
      EXPECT_NEAR(found[k], expected[i * found.size() + k], 1e-9) << i;
  }
}

TEST(Intervention, MapsShowForcedRowsOfTheirHeadOnly) {
  const Sentences s = pair_of();
  const auto model = make_model(transformer(), 3);
  WhatIf::Row row{1, 1, 0, {0.5, 0.25, 0.25, 0, 0}};
  for (const AttentionMap& map :
       maps_of(*model->as<Explainable>()->with_intervention({.forced = {row}}), s)) {
    if (map.kind != "cross") continue;
    const std::vector<float> found(map.weights.begin() + map.cols,
                                   map.weights.begin() + 2 * map.cols);
    const bool it = map.layer == 1 && map.head == 0;
    EXPECT_EQ(found == std::vector<float>({0.5, 0.25, 0.25, 0, 0}), it);
  }
  each_recurrent([&](const Model& m, const std::string& kind) {
    const AttentionMap before = maps_of(m, s).front();
    const AttentionMap map =
        maps_of(*m.as<Explainable>()->with_intervention({.forced = {all_on(1, 3)}}), s).front();
    for (int64_t j = 0; j < kPieces; ++j) {
      EXPECT_EQ(map.weights[map.cols + j], j == 3 ? 1 : 0);
      EXPECT_EQ(map.weights[j], before.weights[j]);  // the step before
    }
    for (int64_t j = 0; kind == "static" && j < kPieces; ++j) {
      EXPECT_EQ(map.weights[2 * map.cols + j], before.weights[j]);  // the step after
    }
  });
}

// In a recurrent model with attention after the step and no input feeding, if every step is forced
// to one word j, then h̃_t = tanh(W_c [h_j; s_t]).
TEST(Intervention, ARecurrentModelReadsTheForcedWord) {
  const Sentences s = pair_of();
  ModelConfig config = recurrent("global", DecoderForm::luong);
  recurrent_of(config).input_feeding = false;
  const auto model = make_model(config, 3, ElementType::f64);
  const auto& r = dynamic_cast<const RecurrentModel&>(*model);
  const auto encoded = r.encode(s.sources());
  const auto decoded = r.decode(encoded, RecurrentModel::Target::of(s.targets()));
  WhatIf intervention;
  for (int64_t t = 0; t < kSteps; ++t) intervention.forced.push_back(all_on(t, 3));
  const auto changed = model->as<Explainable>()->with_intervention(intervention);
  const Decodable& decoder = *changed->as<Decodable>();
  const auto state = decoder.start(s.sources());
  const Tensor h_j = rows(encoded.memory.h, 3, 1);
  for (int64_t t = 0; t < kSteps; ++t) {
    const Tensor s_t = rows(decoded.s.front(), t, 1);
    const Tensor expected = linear(tanh(linear(concat(h_j, s_t), r.W_r)), r.W_o, r.b_o);
    const std::vector<double> want = expected.values();
    const auto found = decoder.step(*state, std::span(s.in).subspan(t, 1)).values();
    for (size_t k = 0; k < found.size(); ++k) EXPECT_NEAR(found[k], want[k], 1e-12);
  }
}

// With relative positions, masked words keep their places: the other words share their weight, and
// the first layer still has the same distances.
TEST(Intervention, MaskedWordsKeepTheDistancesOfTheOthers) {
  const Sentences s = pair_of();
  const auto model = make_model(like_t5(), 3, ElementType::f64);
  model->parameters().find("encoder/bias")->tensor.assign(distance_scores());
  const auto masked = model->as<Explainable>()->with_intervention({.masked = {2}});
  const auto before = maps_of(*model, s), after = maps_of(*masked, s);
  for (size_t m = 0; m < 2; ++m) {  // the heads of the first encoder layer
    ASSERT_EQ(after[m].kind, "encoder");
    for (int64_t i = 0; i < kPieces; ++i)
      for (int64_t j = 0; j < kPieces; ++j) {
        const double share = 1 - double{before[m].weights[i * kPieces + 2]};
        const double wanted = j == 2 ? 0 : before[m].weights[i * kPieces + j] / share;
        EXPECT_NEAR(after[m].weights[i * kPieces + j], wanted, 1e-6);
      }
  }
  EXPECT_NEAR(step_by_step(*masked, s), log_likelihood(*masked, s), 1e-9);
}

TEST(Intervention, HeadsAreCountedByKind) {
  ModelConfig config = transformer();
  config.decoder_layers = 1;
  EXPECT_EQ(heads_of(config, "encoder").layers, 2);
  EXPECT_EQ(heads_of(config, "cross").layers, 1);
  EXPECT_EQ(heads_of(config, "cross").heads, 2);
  EXPECT_EQ(heads_of(config, "sideways").layers, 0);
  EXPECT_EQ(heads_of(with_ssru(), "decoder").layers, 0);
  EXPECT_EQ(heads_of(with_ssru(), "cross").layers, 2);
  EXPECT_EQ(heads_of(recurrent("global", DecoderForm::luong), "cross").layers, 1);
  EXPECT_EQ(heads_of(recurrent("global", DecoderForm::luong), "encoder").layers, 0);
  EXPECT_EQ(heads_of(recurrent("none", DecoderForm::luong), "cross").layers, 0);
}

}  // namespace
}  // namespace fovea
