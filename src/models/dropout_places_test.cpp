#include <gtest/gtest.h>

#include "models/config.h"
#include "models/reader.h"
#include "ops/dropout.h"
#include "support/sentences.h"

namespace fovea {
namespace {

using namespace testing;

// At how many places a model drops out such that it shows in its loss, each tried alone.
template <class Loss>
int64_t places(const Loss& loss) {
  const double without = loss();
  uint32_t all = 0;
  {
    const DropoutScope scope(5, 1);
    loss();
    all = scope.places();
  }
  int64_t seen = 0;
  for (uint32_t op = 0; op < all; ++op) {
    const OnlyDropout only(op);
    const DropoutScope scope(5, 1);
    seen += loss() != without;
  }
  return seen;
}

int64_t places(const ModelConfig& config, const Sentences& s) {
  const auto model = make_model(config, 3, Type::f64);
  return places([&] { return model->loss(s.sources(), s.targets(), s.out, 0.1).loss.values()[0]; });
}

// Vaswani et al., section 5.4: the output of each sub-layer and the sums of embeddings and
// positions. Attention weights and the inside of feed-forward layers have rates of their own.
TEST(DropoutPlaces, OfATransformer) {
  constexpr int64_t encoder = 2, decoder = 3;
  ModelConfig none;
  none.encoder_layers = encoder, none.decoder_layers = decoder;
  none.size = 8, none.heads = 2, none.inner = 12;
  none.source_words = none.target_words = 9;
  none.max_length = 20;
  none.dropout = 0;
  const Sentences s = ragged();
  for (const NormPlace norm : {NormPlace::post, NormPlace::pre}) {
    none.norm = norm;
    EXPECT_EQ(places(none, s), 0);
    ModelConfig plain = none, weights = none, inside = none;
    plain.dropout = 0.5;
    weights.attention_dropout = 0.5;
    inside.activation_dropout = 0.5;
    EXPECT_EQ(places(plain, s), 2 + 2 * encoder + 3 * decoder);
    EXPECT_EQ(places(weights, s), encoder + 2 * decoder);
    EXPECT_EQ(places(inside, s), encoder + decoder);
  }
}

// Embeddings of both sides, what a layer gives to the next, what is attended to, the readout.
TEST(DropoutPlaces, OfARecurrentModel) {
  constexpr int64_t encoder = 2, decoder = 2, times = 3;  // words of the longest target
  ModelConfig c;
  c.type = "recurrent";
  c.encoder_layers = encoder, c.decoder_layers = decoder;
  c.size = 4, c.encoder_size = 4, c.embedding = 3, c.readout = 5;
  c.tied = Tied::none;
  c.source_words = c.target_words = 9;
  c.max_length = 20;
  const Sentences s = ragged();
  for (const Decoder kind : {Decoder::bahdanau, Decoder::luong}) {
    c.decoder = kind;
    c.attention.kind = "global";
    c.input_feeding = true;
    c.dropout = 0;
    EXPECT_EQ(places(c, s), 0);
    c.dropout = 0.5;
    // Where the readout is fed back a decoder goes word by word, and each of them is a place.
    EXPECT_EQ(places(c, s), 2 + (encoder - 1) + 1 + (decoder - 1) * times + 1);
    c.attention.kind = "none";
    EXPECT_EQ(places(c, s), 2 + (encoder - 1) + (decoder - 1) + 1);
  }
  c.attention.kind = "global";
  c.input_feeding = false;
  EXPECT_EQ(places(c, s), 2 + (encoder - 1) + 1 + (decoder - 1) + 1);
}

// Embeddings, what a layer gives to the next, what is attended to, what asks, what is answered.
TEST(DropoutPlaces, OfAReader) {
  constexpr int64_t layers = 2;
  ModelConfig c;
  c.type = "reader";
  c.encoder_layers = layers;
  c.size = 5, c.embedding = 3, c.encoder_size = 4;
  c.attention.kind = "static";
  c.source_words = 9, c.target_words = 7;
  c.max_length = 20;
  const std::vector<int32_t> source{4, 5, 6, 2, 7, 2, 8, 4, 2, 5, 3, 2}, offsets{0, 6, 12};
  const std::vector<int32_t> in{1, 1}, in_offsets{0, 1, 2}, out{5, 4};
  const auto found = [&] {
    const auto model = make_model(c, 3, Type::f64);
    return places([&] {
      return model->loss({source, offsets}, {in, in_offsets}, out, 0.1).loss.values()[0];
    });
  };
  c.query = ReaderQuery::summary;
  c.dropout = 0;
  EXPECT_EQ(found(), 0);
  c.dropout = 0.5;
  EXPECT_EQ(found(), 1 + (layers - 1) + 3);
  c.query = ReaderQuery::learned;  // the text is not summarised
  EXPECT_EQ(found(), 1 + (layers - 1) + 2);
  c.query = ReaderQuery::question;  // a second encoder, whose summary alone asks
  EXPECT_EQ(found(), 2 + 2 * (layers - 1) + 3);
}

}  // namespace
}  // namespace fovea
