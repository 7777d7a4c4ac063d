#include "decode/model_bundle.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>

#include "decode/scorer.h"
#include "decode/translator.h"
#include "support/network_settings.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;

Vocabulary letters(int32_t size) {
  std::vector<Vocabulary::Entry> entries;
  for (int32_t i = kSpecials; i < size; ++i)
    entries.push_back({std::string(1, static_cast<char>('a' + i - kSpecials)), 1});
  return Vocabulary::from_entries(Segmentation::words, entries);
}

ModelConfig tiny() {
  ModelConfig config;
  ModelConfig& t = config;
  t.encoder_layers = t.decoder_layers = 2;
  auto& own = transformer_of(t);
  t.size = 16, own.heads = 2, own.inner = 32, t.max_length = 24;
  t.source_words = t.target_words = 20;
  return config;
}

class ModelBundleDirectory : public testing::Test {
 protected:
  void SetUp() override {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    path_ = fs::temp_directory_path() /
            ("fovea_bundle_" + std::string(test->name()) + "_" + std::to_string(getpid()));
    save();
  }
  void TearDown() override { fs::remove_all(path_); }
  void save() {
    fs::remove_all(path_);
    save_model(path_.string(), tiny(), make_model(tiny(), 3)->parameters());
    save_vocabularies(path_.string(), letters(20), letters(20));
  }
  fs::path path_;
};

TEST_F(ModelBundleDirectory, Loads) {
  const ModelBundle bundle = load_package(path_.string());
  EXPECT_EQ(bundle.source.size(), 20);
  EXPECT_EQ(bundle.model->target_words(), 20);
  save_vocabularies((path_ / "").string(), letters(20), letters(20));
  EXPECT_FALSE(fs::exists(path_ / "source.txt"));
}

TEST_F(ModelBundleDirectory, RefusesBadVocabularies) {
  struct Case {
    const char* name;
    std::function<void()> change;
    const char* message;
  };
  const auto at = [&](const char* name) { return (path_ / name).string(); };
  const Case cases[] = {
      {"none", [&] { fs::remove(at("vocab.txt")); }, "no vocabulary"},
      {"one piece less", [&] { letters(19).save(at("vocab.txt")); }, "19 pieces"},
      {"one piece more", [&] { letters(21).save(at("vocab.txt")); }, "21 pieces"},
      {"two kinds", [&] { fs::copy(at("vocab.txt"), at("vocab.spm")); },
       "vocab.spm and vocab.txt, one is expected"},
      {"joint and source", [&] { letters(20).save(at("source.txt")); }, "joint vocabulary"},
      {"only source", [&] { fs::rename(at("vocab.txt"), at("source.txt")); }, "no vocabulary"},
      {"empty", [&] { fs::resize_file(at("vocab.txt"), 0); }, "empty"},
      {"no SentencePiece", [&] { fs::rename(at("vocab.txt"), at("vocab.spm")); }, "vocab.spm"},
      {"long piece",
       [&] {
         std::ofstream(at("vocab.txt"), std::ios::app) << std::string(100000, 'x') << "\t1\n";
       },
       "longer than"},
      {"twice", [&] { std::ofstream(at("vocab.txt"), std::ios::app) << "a\t1\n"; }, "twice"},
      {"special", [&] { std::ofstream(at("vocab.txt"), std::ios::app) << "</s>\t1\n"; }, "special"},
  };
  for (const Case& c : cases) {
    save();
    c.change();
    try {
      load_package(path_.string());
      ADD_FAILURE() << c.name << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::model) << error.what();
      EXPECT_NE(std::string(error.what()).find(c.message), std::string::npos) << error.what();
    }
  }
}

// ---- end to end with a real (untrained) network ----

const std::vector<std::string> kLines{"a b c", "",    "d",     "p o n m l k j i h g f e d c b a",
                                      "zzz a", "   ", "a b c", "\xff b"};

TEST_F(ModelBundleDirectory, TranslationsDoNotDependOnTheBatch) {
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "docs/design.md, Determinism";
  const ModelBundle bundle = load_package(path_.string());
  TranslateOptions options{
      .search = {.beam = 3, .n_best = 2}, .alignment = true, .attention = true, .warn = false};
  const auto batched =
      Translator({bundle.model.get()}, bundle.source, bundle.target, options).translate(kLines);
  options.batch_sentences = 1;
  const Translator alone({bundle.model.get()}, bundle.source, bundle.target, options);
  ASSERT_EQ(batched.size(), kLines.size());
  EXPECT_EQ(batched[1].text, "");
  EXPECT_TRUE(batched[1].n_best.empty());
  EXPECT_TRUE(batched[5].n_best.empty());
  for (size_t i = 0; i < kLines.size(); ++i) {
    const Translation one =
        alone.translate(std::span(kLines).subspan(i, 1), {"x", static_cast<int64_t>(i) + 1})[0];
    EXPECT_EQ(one.text, batched[i].text);
    ASSERT_EQ(one.n_best.size(), batched[i].n_best.size());
    for (size_t n = 0; n < one.n_best.size(); ++n) {
      EXPECT_EQ(one.n_best[n].score, batched[i].n_best[n].score);
      EXPECT_EQ(one.n_best[n].log_probs, batched[i].n_best[n].log_probs);
      EXPECT_EQ(one.n_best[n].alignment, batched[i].n_best[n].alignment);
    }
  }
  EXPECT_EQ(batched[0].attention.size(), 2u * 2 * 3);  // layers, heads, kinds
}

TEST_F(ModelBundleDirectory, TruncatesLongLines) {
  const ModelBundle bundle = load_package(path_.string());
  const Translator translator({bundle.model.get()}, bundle.source, bundle.target, {.warn = false});
  std::string line;
  for (int i = 0; i < 100; ++i) line += "a ";
  const auto translation = translator.translate(std::vector{line}).front();
  EXPECT_EQ(translation.source_ids.size(), 24u);
  EXPECT_LE(translation.n_best.front().ids.size(), 24u);
}

TEST_F(ModelBundleDirectory, ScoresAgreeWithTheSearch) {
  const ModelBundle bundle = load_package(path_.string());
  const Model* models[] = {bundle.model.get()};
  const Translator translator({bundle.model.get()}, bundle.source, bundle.target,
                              {.search = {.beam = 3, .n_best = 3}, .warn = false});
  Corpus corpus;
  std::vector<Alternative> found;
  for (const Translation& t : translator.translate(kLines))
    for (const Alternative& a : t.n_best) {
      corpus.add(std::span(t.source_ids).first(t.source_ids.size() - 1),
                 std::span(a.ids).first(a.ids.size() - 1), 1);
      found.push_back(a);
    }
  const auto scores = score_pairs(models, corpus);
  ASSERT_EQ(scores.size(), found.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(scores[i].log_prob, found[i].log_prob, 1e-4);
}

TEST_F(ModelBundleDirectory, EnsembleOfTwinsIsTheModel) {
  const ModelBundle bundle = load_package(path_.string());
  const Model* model = bundle.model.get();
  TranslateOptions options{.search = {.beam = 3}, .warn = false};
  const Translator one({model}, bundle.source, bundle.target, options);
  const Translator two({model, model}, bundle.source, bundle.target, options);
  const auto a = one.translate(kLines), b = two.translate(kLines);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].text, b[i].text);
}

}  // namespace
}  // namespace fovea
