// Imports of tiny checkpoints agree with Hugging Face Transformers: tests/golden/hf.

#include "support/hf_golden.h"

#include "decode/generation_defaults.h"
#include "decode/search.h"

namespace fovea {
namespace {

using Json = nlohmann::json;

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

// The translations of all sentences, as generate() of Transformers returns them.
std::vector<Hypothesis> generate(HfGolden& golden, const Json& arguments) {
  const Vocabulary vocabulary = golden.vocabulary();
  const GenerationConfig config = golden.generation(arguments);
  SearchOptions options = search_defaults(config, vocabulary);
  options.n_best = arguments.value("num_return_sequences", 1);
  golden.set_frame(sentence_frame(config, vocabulary, vocabulary));
  std::vector<int32_t> ids, offsets{0};
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < golden.sentences(); ++i) {
    const std::vector<int32_t> source = golden.source(i);
    ids.insert(ids.end(), source.begin(), source.end());
    offsets.push_back(static_cast<int32_t>(ids.size()));
    numbers.push_back(static_cast<int64_t>(i));
  }
  const Model* const models[] = {&golden.model()};
  std::vector<Hypothesis> all;
  for (auto& hypotheses : search(models, {ids, offsets}, numbers, options))
    for (Hypothesis& hypothesis : hypotheses) all.push_back(std::move(hypothesis));
  return all;
}

TEST_P(HfGoldens, GenerateAgrees) {
  const int64_t end = golden_.checkpoint().config.integer("eos_token_id");
  for (const Json& which : golden_.golden()["generate"]) {
    const std::string arguments = which["args"].dump();
    const std::vector<Hypothesis> found = generate(golden_, which["args"]);
    ASSERT_EQ(found.size(), which["sequences"].size()) << arguments;
    for (size_t i = 0; i < found.size(); ++i) {
      auto wanted = which["sequences"][i].get<std::vector<int64_t>>();
      const size_t frame = 1 + golden_.model().frame().target_prefix.size();
      wanted.erase(wanted.begin(), wanted.begin() + static_cast<long>(frame));
      wanted.erase(std::ranges::find(wanted, end), wanted.end());  // padding
      wanted.push_back(end);  // also if the limit of the length ends it
      EXPECT_EQ(found[i].words, golden_.ids(wanted)) << arguments << " sentence " << i;
      if (which["sequences_scores"].is_null()) continue;
      EXPECT_NEAR(found[i].score, which["sequences_scores"][i].get<double>(), kTolerance)
          << arguments << " sentence " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, HfGoldens,
                         testing::Values(std::pair("marian", 1), std::pair("bart", 3),
                                         std::pair("m2m100", 3), std::pair("mbart", 3),
                                         std::pair("t5", 2), std::pair("t5_gated", 2)),
                         [](const auto& test) { return test.param.first; });

}  // namespace
}  // namespace fovea
