// Imports of tiny checkpoints agree with Hugging Face Transformers: tests/golden/hf.

#include "support/hf_golden.h"

namespace fovea {
namespace {

constexpr double kTolerance = 1e-5;  // of the float32 results of Transformers

class HfGoldens : public testing::TestWithParam<std::pair<const char*, int64_t>> {
 protected:
  HfGolden golden_{GetParam().first, GetParam().second};
};

TEST_P(HfGoldens, TheEncoderAgrees) { EXPECT_LT(golden_.worst_encoder_output(), kTolerance); }

TEST_P(HfGoldens, LogitsAgree) { EXPECT_LT(golden_.worst_logit(), kTolerance); }

TEST_P(HfGoldens, AttentionWeightsAgree) {
  EXPECT_LT(golden_.worst_attention("encoder_attention_layer0", "encoder", 0), kTolerance);
  EXPECT_LT(golden_.worst_attention("cross_attention_last_layer", "cross",
                                    golden_.config().decoder_layers - 1),
            kTolerance);
}

INSTANTIATE_TEST_SUITE_P(Models, HfGoldens,
                         testing::Values(std::pair("marian", 1), std::pair("bart", 3),
                                         std::pair("m2m100", 3), std::pair("mbart", 3)),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace fovea
