// Imports of real models agree with the original programs. The directory $FOVEA_FOREIGN_MODELS has
// opus/model_data.argosmodel (OPUS-MT zh→en as an Argos package) and fairseq/latin2nqo_001.35 and
// .38 (checkpoints/, data/), and the results of the original programs in float32:
// opus-zh-en.jsonl of CTranslate2, and fairseq-latin2nqo_001.35.jsonl and .38.jsonl of fairseq. It
// also has bergamot/enpt-1693087644 and its results in int8, bergamot-en-pt.en and .pt.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "decode/generation_defaults.h"
#include "decode/model_bundle.h"
#include "decode/translator.h"
#include "importer/import_model.h"
#include "temporary.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

class RealModels : public testing::Test {
 protected:
  // Imports the model at `path`, and reads the lines of the file `results`. Skips the test if the
  // directory of the models does not have both.
  void import(const std::string& path, const std::string& results, const std::string& from = "",
              const std::string& to = "") {
    const char* const folder = std::getenv("FOVEA_FOREIGN_MODELS");
    if (folder == nullptr)
      GTEST_SKIP() << "set FOVEA_FOREIGN_MODELS to the directory of the models";
    models_ = folder;
    if (!fs::exists(models_ / path) || !fs::exists(models_ / results))
      GTEST_SKIP() << folder << " has no " << path << " or no " << results;
    write_imported(read_foreign_model({models_ / path, from, to}), out_.path(), StoredType::F32);
    bundle_ = load_package(out_.path());
    if (!results.ends_with(".jsonl")) return;
    for (const std::string& line : lines_of(models_ / results)) {
      lines_.push_back(Json::parse(line));
      sources_.push_back(lines_.back()["source"]);
    }
    ASSERT_GT(lines_.size(), 50u);
  }

  SearchOptions defaults() const {
    return search_defaults(bundle_.config.generation, bundle_.target);
  }

  // At least 99 % of the translations are equal, and all of these have equal scores.
  // `expected` returns the object with the text and the score of a line.
  template <class Expected>
  void expect_agreement(const SearchOptions& search, const Expected& expected) {
    TranslateOptions options;
    options.search = search;
    const Translator translator({bundle_.model.get()}, bundle_.source, bundle_.target, options);
    const auto found = translator.translate(sources_);
    size_t same = 0, near = 0;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const Json wanted = expected(lines_[i]);
      if (found[i].text != wanted["text"].get<std::string>()) continue;
      ++same;
      near += std::abs(found[i].n_best.front().score - wanted["score"].get<double>()) < 1e-3;
    }
    std::printf("beam %d: %zu of %zu lines equal, %zu of them with scores within 1e-3\n",
                static_cast<int>(search.beam), same, lines_.size(), near);
    EXPECT_GE(100 * same, 99 * lines_.size());
    EXPECT_EQ(near, same);
  }

  fs::path models_;
  TemporaryFolder out_;
  ModelBundle bundle_;
  std::vector<Json> lines_;
  std::vector<std::string> sources_;
};

TEST_F(RealModels, OpusMtAgreesWithCTranslate2) {
  import("opus/model_data.argosmodel", "opus-zh-en.jsonl");
  for (const Json& line : lines_) {
    auto wanted = line["pieces"].get<std::vector<std::string>>();
    for (std::string& piece : wanted)  // CTranslate2 keeps the text of unknown pieces
      if (bundle_.source.id(piece) == kUnk) piece = "<unk>";
    EXPECT_EQ(bundle_.source.pieces(bundle_.source.encode(line["source"].get<std::string>())),
              wanted);
  }
  for (const int64_t beam : {4, 1}) {
    if (lines_.empty()) continue;  // skipped
    SearchOptions search = defaults();
    search.beam = beam;
    search.length_penalty = 1;
    expect_agreement(search,
                     [&](const Json& line) { return line["float32_beam" + std::to_string(beam)]; });
  }
}

// The engine splits lines into sentences, rounds activations to int8, and has a shortlist of words.
// The import computes in float32, which changes words in about a third of the lines.
TEST_F(RealModels, BergamotAgreesWithItsEngine) {
  import("bergamot/enpt-1693087644", "bergamot-en-pt.pt", "en", "pt");
  if (!bundle_.model) return;  // skipped
  sources_ = lines_of(models_ / "bergamot-en-pt.en");
  const std::vector<std::string> wanted = lines_of(models_ / "bergamot-en-pt.pt");
  ASSERT_EQ(sources_.size(), wanted.size());
  TranslateOptions options;
  options.search = defaults();
  const Translator translator({bundle_.model.get()}, bundle_.source, bundle_.target, options);
  const auto found = translator.translate(sources_);
  size_t same = 0;
  for (size_t i = 0; i < wanted.size(); ++i) same += found[i].text == wanted[i];
  std::printf("bergamot: %zu of %zu lines equal\n", same, wanted.size());
  EXPECT_GE(100 * same, 65 * wanted.size());
}

class FairseqModels : public RealModels, public testing::WithParamInterface<const char*> {};

TEST_P(FairseqModels, AgreeWithFairseq) {
  const std::string name = std::string("latin2nqo_001.") + GetParam();
  import("fairseq/" + name, "fairseq-" + name + ".jsonl", "roman", "nqo");
  if (lines_.empty()) return;      // skipped
  for (const Json& line : lines_)  // ids of fairseq: <s>, <pad>, </s>, <unk> are 0 to 3
    EXPECT_EQ(bundle_.source.encode(line["source"].get<std::string>()).size() + 1,
              line["source_ids"].size());
  expect_agreement(defaults(), [](const Json& line) { return line; });
}

INSTANTIATE_TEST_SUITE_P(Versions, FairseqModels, testing::Values("35", "38"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace fovea
