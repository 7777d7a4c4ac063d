#include <cmath>

#include "attention/attention_steps.h"
#include "models/transformer.h"
#include "support/gradient_check.h"
#include "support/network_settings.h"

// Layers of published Transformers, compared with their equations in plain double arithmetic.
namespace fovea {
namespace {

using namespace testing;

constexpr int64_t kSize = 4, kHeads = 2, kWords = 5;

ModelConfig config_of(NormType norm, NormPlace place) {
  ModelConfig c;
  auto& own = transformer_of(c);
  c.size = kSize, own.heads = kHeads, own.inner = 6;
  own.norm_type = norm, own.norm = place;
  c.dropout = 0;
  return c;
}

struct RandomStore : ParameterStore {
  RandomStore() : ParameterStore(ElementType::f64) {}
  void randomize() {
    allocate(1);
    uint64_t seed = 1;
    for (const Parameter& p : all())
      p.tensor.assign(random_tensor(p.tensor.shape(), ++seed).values());
  }
  DoubleRow values(const std::string& name) const { return find(name)->tensor.values(); }
};

// x Wᵀ + b, with b absent if it is empty.
DoubleRow affine(const DoubleRow& W, const DoubleRow& b, const DoubleRow& x) {
  DoubleRow y(W.size() / x.size(), 0);
  for (size_t i = 0; i < y.size(); ++i) {
    if (!b.empty()) y[i] = b[i];
    for (size_t j = 0; j < x.size(); ++j) y[i] += W[i * x.size() + j] * x[j];
  }
  return y;
}

DoubleRow operator+(DoubleRow a, const DoubleRow& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

double sigmoid_of(double x) { return 1 / (1 + std::exp(-x)); }

DoubleRow rms_norm_of(const DoubleRow& g, double epsilon, DoubleRow x) {
  const double mean = dot(x, x) / static_cast<double>(x.size());
  for (size_t i = 0; i < x.size(); ++i) x[i] *= g[i] / std::sqrt(mean + epsilon);
  return x;
}

DoubleRow layer_norm_of(const DoubleRow& g, const DoubleRow& b, double epsilon, DoubleRow x) {
  double mean = 0;
  for (const double v : x) mean += v / static_cast<double>(x.size());
  for (double& v : x) v -= mean;
  return rms_norm_of(g, epsilon, x) + b;
}

void expect_rows(const Tensor& found, const std::vector<DoubleRow>& wanted) {
  const std::vector<DoubleRow> rows = rows_of(found);
  ASSERT_EQ(rows.size(), wanted.size());
  for (size_t t = 0; t < rows.size(); ++t)
    for (size_t i = 0; i < rows[t].size(); ++i) EXPECT_NEAR(rows[t][i], wanted[t][i], 1e-12) << t;
}

// x + SelfAttention(RMSNorm(x)) of one head after another, with distance scores.
std::vector<DoubleRow> after_attention(const RandomStore& store, std::vector<DoubleRow> x,
                                       const DistanceBuckets& buckets, size_t d_k) {
  const DoubleRow B = store.values("bias");
  std::vector<DoubleRow> q, k, v;
  for (const DoubleRow& row : x) {
    const DoubleRow h = rms_norm_of(store.values("norm_1/g"), 1e-6, row);
    const auto project = [&](const std::string& name) {
      return affine(store.values("attend/W_" + name), store.values("attend/b_" + name), h);
    };
    q.push_back(project("Q")), k.push_back(project("K")), v.push_back(project("V"));
  }
  for (size_t i = 0; i < x.size(); ++i) {
    DoubleRow heads(kHeads * d_k, 0);
    for (size_t h = 0; h < kHeads; ++h) {
      DoubleRow e;
      for (size_t j = 0; j < x.size(); ++j) {
        const int64_t bucket = buckets.bucket(static_cast<int64_t>(j) - static_cast<int64_t>(i));
        double product = 0;
        for (size_t c = h * d_k; c < (h + 1) * d_k; ++c) product += q[i][c] * k[j][c];
        e.push_back(product / std::sqrt(static_cast<double>(d_k)) +
                    B[static_cast<size_t>(bucket) * kHeads + h]);
      }
      const DoubleRow alpha = softmax_of(e);
      for (size_t j = 0; j < x.size(); ++j)
        for (size_t c = h * d_k; c < (h + 1) * d_k; ++c) heads[c] += alpha[j] * v[j][c];
    }
    x[i] = x[i] + affine(store.values("attend/W_O/W"), store.values("attend/W_O/b"), heads);
  }
  return x;
}

// The encoder layer of T5 1.1: Raffel et al. 2020; Shazeer 2020.
TEST(TransformerVariants, T5EncoderLayer) {
  ModelConfig c = config_of(NormType::rms, NormPlace::pre);
  auto& own = transformer_of(c);
  own.norm_epsilon = 1e-6, own.head_size = 3, own.gated = true;
  own.activation = Function::gelu_tanh;
  const DistanceBuckets buckets{8, 6, DistanceBuckets::Directions::both};
  RandomStore store;
  const ParameterScope root{store, ""};
  const EncoderLayer layer(root, c, own);
  const RelativePositions positions(root, buckets, kHeads, 1);
  store.randomize();
  const Tensor x = random_tensor({kWords, kSize}, 77);
  const SentenceOffsets one = SentenceOffsets::of(std::vector<int32_t>{0, kWords});

  std::vector<DoubleRow> wanted = after_attention(store, rows_of(x), buckets, 3);
  for (DoubleRow& row : wanted) {
    const DoubleRow h = rms_norm_of(store.values("norm_2/g"), 1e-6, row);
    const auto project = [&](const std::string& name, const DoubleRow& in) {
      return affine(store.values("feed_forward/W_" + name + "/W"),
                    store.values("feed_forward/W_" + name + "/b"), in);
    };
    DoubleRow inner = project("1", h);
    const DoubleRow gate = project("3", h);
    for (size_t i = 0; i < inner.size(); ++i) {
      const double u = std::sqrt(2 / 3.14159265358979323846) *
                       (inner[i] + 0.044715 * inner[i] * inner[i] * inner[i]);
      inner[i] *= 0.5 * (1 + std::tanh(u)) * gate[i];
    }
    row = row + project("2", inner);
  }
  expect_rows(layer(x, one, positions.for_length(kWords)), wanted);
}

// The first sub-layer of Marian's decoders with SSRU: LayerNorm(y + max(0, c)), Kim et al. 2019.
TEST(TransformerVariants, SsruSubLayer) {
  ModelConfig c = config_of(NormType::layer, NormPlace::post);
  auto& own = transformer_of(c);
  own.norm_epsilon = 1e-6, own.decoder_layer = DecoderLayerType::ssru;
  RandomStore store;
  const DecoderLayer layer(ParameterScope{store, ""}, c, own);
  store.randomize();
  const Tensor y = random_tensor({kWords, kSize}, 77);
  std::vector<DoubleRow> wanted;
  DoubleRow state(kSize, 0);
  for (const DoubleRow& row : rows_of(y)) {
    const DoubleRow z = affine(store.values("ssru/W_f"), store.values("ssru/b_f"), row);
    const DoubleRow x = affine(store.values("ssru/W"), {}, row);
    DoubleRow sum = row;
    for (size_t i = 0; i < kSize; ++i) {
      const double f = sigmoid_of(z[i]);
      state[i] = f * state[i] + (1 - f) * x[i];
      sum[i] += std::max(0.0, state[i]);
    }
    wanted.push_back(layer_norm_of(store.values("norm_1/g"), store.values("norm_1/b"), 1e-6, sum));
  }
  const SentenceOffsets one = SentenceOffsets::of(std::vector<int32_t>{0, kWords});
  expect_rows(layer.read_words(y, one, {}), wanted);
}

// BART: LayerNorm(E[w] + P[position]), Lewis et al. 2020.
TEST(TransformerVariants, EmbeddingNorm) {
  ModelConfig c = config_of(NormType::layer, NormPlace::post);
  auto& own = transformer_of(c);
  own.embedding_norm = true, own.positions = Positions::learned, own.scale_embeddings = false;
  c.encoder_layers = c.decoder_layers = 1, c.source_words = c.target_words = 9;
  c.max_length = 6;
  Transformer model(c, own, ElementType::f64);
  model.parameters().allocate(1);
  uint64_t seed = 1;
  for (const auto& p : model.parameters().all())
    p.tensor.assign(random_tensor(p.tensor.shape(), ++seed).values());
  const auto row_of = [&](const char* name, int64_t row) {
    return model.parameters().find(name)->tensor.window(row, 1).values();
  };
  const auto values = [&](const char* name) {
    return model.parameters().find(name)->tensor.values();
  };
  const std::vector<int32_t> words{5, 3, 8};
  const SentenceOffsets one = SentenceOffsets::of(std::vector<int32_t>{0, 3});
  std::vector<DoubleRow> wanted;
  for (size_t t = 0; t < words.size(); ++t)
    wanted.push_back(
        layer_norm_of(values("target/norm/g"), values("target/norm/b"), 1e-5,
                      row_of("source/E", words[t]) + row_of("target/P", static_cast<int64_t>(t))));
  expect_rows(model.embed_target(words, one), wanted);
}

}  // namespace
}  // namespace fovea
