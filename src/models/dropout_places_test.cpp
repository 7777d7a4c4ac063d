#include <gtest/gtest.h>

#include "models/model_config.h"
#include "models/text_classifier.h"
#include "ops/dropout.h"
#include "support/network_settings.h"
#include "support/sentences.h"

namespace fovea {
namespace {

using namespace testing;

// The number of dropout sites of a model that affect its loss. Each site is enabled alone.
template <class Loss>
int64_t dropout_sites(const Loss& loss) {
  const double without = loss();
  uint32_t all = 0;
  {
    const DropoutScope scope(5, 1);
    loss();
    all = scope.places();
  }
  int64_t effective = 0;
  for (uint32_t op = 0; op < all; ++op) {
    const OnlyDropout only(op);
    const DropoutScope scope(5, 1);
    effective += loss() != without;
  }
  return effective;
}

int64_t dropout_sites(const ModelConfig& config, const Sentences& s) {
  const auto model = make_model(config, 3, ElementType::f64);
  return dropout_sites([&] {
    return model->loss({s.sources(), s.targets(), s.out}, 0.1).loss.values()[0];
  });
}

// Vaswani et al., section 5.4: dropout of the output of each sub-layer and of the sums of
// embeddings and positions. Attention weights and the inside of feed-forward layers have separate
// rates.
TEST(DropoutPlaces, OfATransformer) {
  constexpr int64_t encoder = 2, decoder = 3;
  ModelConfig none;
  none.encoder_layers = encoder, none.decoder_layers = decoder;
  none.size = 8, transformer_of(none).heads = 2, transformer_of(none).inner = 12;
  none.source_words = none.target_words = 9;
  none.max_length = 20;
  none.dropout = 0;
  const Sentences s = ragged();
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    transformer_of(none).norm = norm;
    EXPECT_EQ(dropout_sites(none, s), 0);
    ModelConfig plain = none, weights = none, inside = none;
    plain.dropout = 0.5;
    transformer_of(weights).attention_dropout = 0.5;
    transformer_of(inside).activation_dropout = 0.5;
    EXPECT_EQ(dropout_sites(plain, s), 2 + 2 * encoder + 3 * decoder);
    EXPECT_EQ(dropout_sites(weights, s), encoder + 2 * decoder);
    EXPECT_EQ(dropout_sites(inside, s), encoder + decoder);
  }
}

// Dropout of the embeddings of both sides, layer outputs, annotations, and the readout.
TEST(DropoutPlaces, OfARecurrentModel) {
  constexpr int64_t encoder = 2, decoder = 2, times = 3;  // words of the longest target
  ModelConfig c;
  RecurrentConfig& own = c.network.emplace<RecurrentConfig>();
  c.encoder_layers = encoder, c.decoder_layers = decoder;
  c.size = 4, own.encoder_size = 4, own.embedding = 3, own.readout = 5;
  c.tied = TiedEmbeddings::none;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  const Sentences s = ragged();
  for (const DecoderForm kind : {DecoderForm::bahdanau, DecoderForm::luong}) {
    own.decoder = kind;
    own.attention.kind = "global";
    own.input_feeding = true;
    c.dropout = 0;
    EXPECT_EQ(dropout_sites(c, s), 0);
    c.dropout = 0.5;
    // With feedback of the readout, the decoder runs word by word, and each word is a site.
    EXPECT_EQ(dropout_sites(c, s), 2 + (encoder - 1) + 1 + (decoder - 1) * times + 1);
    own.attention.kind = "none";
    EXPECT_EQ(dropout_sites(c, s), 2 + (encoder - 1) + (decoder - 1) + 1);
  }
  own.attention.kind = "global";
  own.input_feeding = false;
  EXPECT_EQ(dropout_sites(c, s), 2 + (encoder - 1) + 1 + (decoder - 1) + 1);
}

// Dropout of the embeddings, layer outputs, annotations, query, and result.
TEST(DropoutPlaces, OfAReader) {
  constexpr int64_t layers = 2;
  ModelConfig c;
  ReaderConfig& own = c.network.emplace<ReaderConfig>();
  c.encoder_layers = layers;
  c.size = 5, own.embedding = 3, own.encoder_size = 4;
  own.attention.kind = "static";
  c.source_words = 9, c.target_words = 7;
  c.max_length = 20;
  const std::vector<int32_t> source{4, 5, 6, 2, 7, 2, 8, 4, 2, 5, 3, 2}, offsets{0, 6, 12};
  const std::vector<int32_t> in{1, 1}, in_offsets{0, 1, 2}, out{5, 4};
  const auto found = [&] {
    const auto model = make_model(c, 3, ElementType::f64);
    return dropout_sites([&] {
      return model->loss({{source, offsets}, {in, in_offsets}, out}, 0.1).loss.values()[0];
    });
  };
  own.query = ReaderQuery::summary;
  c.dropout = 0;
  EXPECT_EQ(found(), 0);
  c.dropout = 0.5;
  EXPECT_EQ(found(), 1 + (layers - 1) + 3);
  own.query = ReaderQuery::learned;  // the summary of the text is not used
  EXPECT_EQ(found(), 1 + (layers - 1) + 2);
  own.query = ReaderQuery::question;  // a second encoder; only its summary is used
  EXPECT_EQ(found(), 2 + 2 * (layers - 1) + 3);
}

}  // namespace
}  // namespace fovea
