#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "attention/additive.h"
#include "base/random.h"
#include "models/recurrent_model.h"
#include "models/transformer.h"
#include "support/network_settings.h"

// Compares the computation steps of attention with the equations, which are computed here from the
// parameters in double precision.
namespace fovea {
namespace {

const std::vector<int32_t> kSource{5, 6, 7, 8, 2}, kTarget{1, 9, 10, 11};
const std::vector<int32_t> kSourceOffsets{0, 5}, kTargetOffsets{0, 4};

TokenBatch source() { return {kSource, kSourceOffsets}; }
TokenBatch target() { return {kTarget, kTargetOffsets}; }

ModelConfig small(const std::string& type) {
  ModelConfig config;
  choose_network(config, type);
  config.encoder_layers = config.decoder_layers = 2;
  config.size = 8;
  if (type == "transformer") transformer_of(config).inner = 12, transformer_of(config).heads = 2;
  config.max_length = 16;
  config.source_words = config.target_words = 20;
  return config;
}

// Biases are initialised with 0, which would hide a missing bias.
void randomize(Model& model) {
  Random random(3);
  std::vector<double> values(static_cast<size_t>(model.parameters().size()));
  for (double& value : values) value = random.uniform() - 0.5;
  model.parameters().values().assign(values);
}

const ComputationStep& named(const ComputationSteps& steps, const std::string& name) {
  for (const ComputationStep& step : steps.all)
    if (step.name == name) return step;
  throw std::runtime_error("there is no step " + name);
}

DoubleRow column(const ComputationSteps& steps, const std::string& name) {
  DoubleRow numbers;
  for (const DoubleRow& row : named(steps, name).rows) numbers.push_back(row.at(0));
  return numbers;
}

void expect_near(const DoubleRow& found, const DoubleRow& wanted, double most,
                 const std::string& what) {
  ASSERT_EQ(found.size(), wanted.size()) << what;
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], most) << what;
}

// W x + b for the rows first … first + count − 1 of W.
DoubleRow affine(const Tensor& W, const Tensor& b, const DoubleRow& x, size_t first, size_t count) {
  const DoubleRow w = W.values(),
                  bias = b ? b.values() : DoubleRow(static_cast<size_t>(W.rows()), 0);
  DoubleRow y;
  for (size_t i = first; i < first + count; ++i) {
    double sum = bias[i];
    for (size_t k = 0; k < x.size(); ++k) sum += w[i * x.size() + k] * x[k];
    y.push_back(sum);
  }
  return y;
}

DoubleRow softmax(const DoubleRow& e) {
  double all = 0;
  for (const double x : e) all += std::exp(x);
  DoubleRow p;
  for (const double x : e) p.push_back(std::exp(x) / all);
  return p;
}

DoubleRow weighted_sum(const DoubleRow& weights, const std::vector<DoubleRow>& values) {
  DoubleRow sum(values[0].size(), 0);
  for (size_t j = 0; j < values.size(); ++j)
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weights[j] * values[j][i];
  return sum;
}

double product(const DoubleRow& a, const DoubleRow& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// √D E[id] + the sinusoids of its position.
std::vector<DoubleRow> embedded(const Transformer& model, const std::vector<int32_t>& ids,
                                size_t D) {
  const DoubleRow E = model.embed_source.E.values();
  std::vector<DoubleRow> x;
  for (size_t j = 0; j < ids.size(); ++j) {
    x.emplace_back();
    for (size_t i = 0; i < D; ++i) {
      const double angle = static_cast<double>(j) /
                           std::pow(10000, static_cast<double>(i / 2 * 2) / static_cast<double>(D));
      x.back().push_back(std::sqrt(static_cast<double>(D)) *
                             E[static_cast<size_t>(ids[j]) * D + i] +
                         (i % 2 ? std::cos(angle) : std::sin(angle)));
    }
  }
  return x;
}

TEST(Explain, SelfAttentionAgreesWithTheEquations) {
  const size_t D = 8, d_k = 4;
  const auto model = make_model(small("transformer"), 1, ElementType::f64);
  randomize(*model);
  const auto& net = dynamic_cast<const Transformer&>(*model);
  const MultiHeadAttention& a = net.encoder_layers[0].attend;
  const std::vector<DoubleRow> x = embedded(net, kSource, D);
  for (size_t head = 0; head < 2; ++head)
    for (size_t row = 0; row < kSource.size(); ++row) {
      const DoubleRow q = affine(a.W_Q, a.b_Q, x[row], head * d_k, d_k);
      std::vector<DoubleRow> k, v;
      DoubleRow products, scaled;
      for (const DoubleRow& word : x) {
        k.push_back(affine(a.W_K, a.b_K, word, head * d_k, d_k));
        v.push_back(affine(a.W_V, a.b_V, word, head * d_k, d_k));
        products.push_back(product(q, k.back()));
        scaled.push_back(products.back() / 2);  // √4
      }
      const DoubleRow alpha = softmax(scaled);
      const ComputationSteps steps = model->as<Explainable>()->explain(
          source(), target(),
          {"encoder", 0, static_cast<int64_t>(head), static_cast<int64_t>(row)});
      expect_near(named(steps, "q").rows.at(0), q, 1e-12, "q");
      for (size_t j = 0; j < k.size(); ++j) {
        expect_near(named(steps, "k_j").rows.at(j), k[j], 1e-12, "k_j");
        expect_near(named(steps, "v_j").rows.at(j), v[j], 1e-12, "v_j");
        DoubleRow weighted = v[j];
        for (double& number : weighted) number *= alpha[j];
        expect_near(named(steps, "α_j v_j").rows.at(j), weighted, 1e-12, "α_j v_j");
      }
      expect_near(column(steps, "q·k_j"), products, 1e-12, "q·k_j");
      expect_near(column(steps, "÷ √d_k"), scaled, 1e-12, "÷ √d_k");
      expect_near(column(steps, "α_j"), alpha, 1e-12, "α_j");
      expect_near(named(steps, "Σ_j α_j v_j").rows.at(0), weighted_sum(alpha, v), 1e-12, "sum");
      EXPECT_EQ(named(steps, "q·k_j").factors, (std::vector<std::string>{"q", "k_j"}));
    }
}

// The weights agree with the attention maps, for every row of every map and both norms.
TEST(Explain, WeightsAgreeWithTheMaps) {
  ModelConfig post = small("transformer"), pre = post, relative = post, recurrent = post;
  transformer_of(pre).norm = NormPlace::pre;
  transformer_of(relative).positions = Positions::relative;
  transformer_of(relative).head_size = 3;
  transformer_of(recurrent).decoder_layer = DecoderLayerType::ssru;
  for (const ModelConfig& config : {post, pre, relative, recurrent}) {
    const auto model = make_model(config, 1, ElementType::f64);
    randomize(*model);
    const auto maps = model->as<Attentive>()->attention(source(), target()).front();
    const size_t kinds = transformer_of(config).recurrent_decoder() ? 2 : 3;
    ASSERT_EQ(maps.size(), kinds * 4);  // two layers, two heads
    for (const AttentionMap& map : maps)
      for (int64_t i = 0; i < map.rows; ++i) {
        const ComputationSteps steps = model->as<Explainable>()->explain(
            source(), target(), {map.kind, map.layer, map.head, i});
        DoubleRow wanted(map.weights.begin() + i * map.cols,
                         map.weights.begin() + (i + 1) * map.cols);
        if (map.kind == "decoder") wanted.resize(static_cast<size_t>(i) + 1);
        expect_near(column(steps, "α_j"), wanted, 1e-6, map.kind);
      }
  }
}

TEST(Explain, AdditiveAttentionAgreesWithTheEquations) {
  ModelConfig config = small("recurrent");
  config.encoder_layers = config.decoder_layers = 1;
  recurrent_of(config).attention.inner = 5;
  const auto model = make_model(config, 1, ElementType::f64);
  randomize(*model);
  const auto& net = dynamic_cast<const RecurrentModel&>(*model);
  const auto& score =
      dynamic_cast<const AdditiveScore&>(dynamic_cast<const ScoredAttention&>(*net.attend).score());
  const std::vector<DoubleRow> h = rows_of(net.encode(source()).memory.h);
  const DoubleRow v = score.v.values();
  for (int64_t row = 0; row < 4; ++row) {
    const ComputationSteps steps =
        model->as<Explainable>()->explain(source(), target(), {"cross", 0, 0, row});
    const DoubleRow s = named(steps, "s_t").rows.at(0);
    if (row == 0) {  // s_0 = tanh(W_s ←h_1)
      DoubleRow first = affine(net.W_s[0], {}, DoubleRow(h[0].begin() + 8, h[0].end()), 0, 8);
      for (double& number : first) number = std::tanh(number);
      expect_near(s, first, 1e-12, "s_0");
    }
    const DoubleRow q = affine(score.W_a, {}, s, 0, 5);
    DoubleRow e;
    for (size_t j = 0; j < h.size(); ++j) {
      const DoubleRow k = affine(score.U_a, {}, h[j], 0, 5);
      DoubleRow inner;
      for (size_t i = 0; i < 5; ++i) inner.push_back(std::tanh(q[i] + k[i]));
      expect_near(named(steps, "U_a h_j").rows.at(j), k, 1e-12, "U_a h_j");
      expect_near(named(steps, "tanh").rows.at(j), inner, 1e-12, "tanh");
      expect_near(named(steps, "h_j").rows.at(j), h[j], 1e-12, "h_j");
      e.push_back(product(v, inner));
    }
    expect_near(named(steps, "W_a s_t").rows.at(0), q, 1e-12, "W_a s_t");
    expect_near(named(steps, "v").rows.at(0), v, 1e-12, "v");
    expect_near(column(steps, "e_tj"), e, 1e-12, "e_tj");
    expect_near(column(steps, "α_tj"), softmax(e), 1e-12, "α_tj");
    expect_near(named(steps, "c_t").rows.at(0), weighted_sum(softmax(e), h), 1e-12, "c_t");
  }
}

// Each step that is a sum of products equals the sum over its named factors. There is exactly one.
void expect_sums(const ComputationSteps& steps) {
  int sums = 0;
  for (const ComputationStep& step : steps.all) {
    if (step.factors.empty()) continue;
    ++sums;
    for (size_t j = 0; j < step.rows.size(); ++j) {
      const auto values = [&](const std::string& name) {
        const ComputationStep& factor = named(steps, name);
        return factor.rows.at(factor.of == ComputationStep::Of::words ? j : 0);
      };
      DoubleRow terms = values(step.factors.front());
      if (step.factors.size() > 1) terms = {product(terms, values(step.factors.back()))};
      EXPECT_NEAR(step.rows[j].at(0), std::accumulate(terms.begin(), terms.end(), 0.0), 1e-9)
          << step.name << " of word " << j;
    }
  }
  EXPECT_EQ(sums, 1);
}

// For every mechanism, score and decoder form: the weights agree with the maps, c_t is the weighted
// sum of the h_j, and sums of products agree with their factors.
TEST(Explain, EveryMechanismEndsWithItsWeights) {
  for (const AttentionMechanism& mechanism : attention_mechanisms())
    for (const AttentionInfo& score : attention_scores())
      for (const DecoderForm decoder : {DecoderForm::bahdanau, DecoderForm::luong}) {
        const bool scored = mechanism.scoring == AttentionMechanism::ScoreUse::score;
        if (mechanism.about.name == std::string("none")) continue;
        SCOPED_TRACE(std::string(mechanism.about.name) + " " + score.name);
        ModelConfig config = small("recurrent");
        auto& own = recurrent_of(config);
        own.encoder_size = 4;  // states and annotations then have the same size
        own.decoder = decoder;
        own.attention.kind = mechanism.about.name;
        own.attention.score = scored ? score.name : "auto";
        own.attention.window = 1;
        own.attention.gaussians = 3;
        const auto model = make_model(config, 1, ElementType::f64);
        randomize(*model);
        const AttentionMap map =
            model->as<Attentive>()->attention(source(), target()).front().front();
        for (int64_t i = 0; i < map.rows; ++i) {
          const ComputationSteps steps =
              model->as<Explainable>()->explain(source(), target(), {"cross", 0, 0, i});
          const bool window = map.mechanism == "window";
          DoubleRow alpha = column(steps, window ? "φ_tj" : "α_tj");
          const ComputationStep& values = steps.all.at(steps.all.size() - 3);
          expect_near(named(steps, "c_t").rows.at(0), weighted_sum(alpha, values.rows), 1e-9,
                      "c_t");
          const double all = std::accumulate(alpha.begin(), alpha.end(), 0.0);
          if (window)
            for (double& number : alpha) number /= all;
          expect_near(
              alpha, {map.weights.begin() + i * map.cols, map.weights.begin() + (i + 1) * map.cols},
              1e-6, "weights");
          EXPECT_FALSE(steps.all.front().formula.empty());
          if (scored || window) expect_sums(steps);
        }
      }
}

}  // namespace
}  // namespace fovea
