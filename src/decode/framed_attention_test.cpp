#include "decode/framed_attention.h"

#include <gtest/gtest.h>

#include "models/model_config.h"
#include "support/network_settings.h"
#include "temporary.h"
#include "text/vocabulary.h"

namespace fovea {
namespace {

using Words = std::vector<int32_t>;

std::unique_ptr<Model> small_transformer() {
  ModelConfig c;
  c.encoder_layers = c.decoder_layers = 1;
  c.size = 16, c.max_length = 20;
  auto& own = transformer_of(c);
  own.heads = 2, own.inner = 16;
  c.source_words = c.target_words = 12;
  return make_model(c, 3);
}

const SentenceFrame kFrame{
    .start = 2, .source_prefix = {9}, .source_suffix = {2, 8}, .target_prefix = {7}};

TEST(FramedAttention, HasTheRowsAndColumnsOfTheText) {
  const auto model = small_transformer();
  const Words source{4, 5, 6}, target{10, 11};
  const Words framed_source{9, 4, 5, 6, 2, 8, 2}, framed_target{2, 7, 10, 11};
  const TextPair pair{source, target};
  const std::vector<int32_t> from{0, 7}, to{0, 4};
  const auto whole = model->as<Attentive>()->attention({framed_source, from}, {framed_target, to});
  model->set_frame(kFrame);
  const auto maps = attention_of(*model, std::span(&pair, 1)).front();
  ASSERT_EQ(maps.size(), whole.front().size());
  for (size_t m = 0; m < maps.size(); ++m) {
    const AttentionMap &shown = maps[m], &all = whole.front()[m];
    const bool encoder = shown.kind == "encoder", decoder = shown.kind == "decoder";
    ASSERT_EQ(shown.rows, encoder ? 4 : 3);
    ASSERT_EQ(shown.cols, decoder ? 3 : 4);
    for (int64_t i = 0; i < shown.rows; ++i)
      for (int64_t j = 0; j < shown.cols; ++j)  // both sides have one piece before the text
        EXPECT_EQ(shown.weights[i * shown.cols + j], all.weights[(i + 1) * all.cols + j + 1]);
  }
}

TEST(FramedAttention, AnEndThatTheModelDoesNotReadHasNoWeight) {
  const auto model = small_transformer();
  model->set_frame({.source_end = false});
  const Words source{4, 5}, target{10};
  const TextPair pair{source, target};
  const auto maps = attention_of(*model, std::span(&pair, 1)).front();
  for (const AttentionMap& map : maps) {
    if (map.kind == "decoder") continue;
    EXPECT_EQ(map.cols, 3);
    for (int64_t i = 0; i < map.rows; ++i) EXPECT_EQ(map.weights[i * 3 + 2], 0);
  }
}

TEST(FramedAttention, MovesAnIntervention) {
  WhatIf what_if;
  what_if.masked = {0, 3};
  what_if.forced = {{.step = 2, .weights = {0, 0.5, 0, 0.5}}};
  const WhatIf framed = in_frame(what_if, 4, kFrame);
  EXPECT_EQ(framed.masked, (Words{1, 4}));
  EXPECT_EQ(framed.forced[0].step, 3);
  EXPECT_EQ(framed.forced[0].weights, (std::vector<double>{0, 0, 0.5, 0, 0.5, 0, 0}));
  EXPECT_EQ(in_frame(what_if, 4, {}).forced[0].weights, what_if.forced[0].weights);
  message_of(ExitCode::usage, [&] { in_frame(what_if, 4, {.source_end = false}); });
}

}  // namespace
}  // namespace fovea
