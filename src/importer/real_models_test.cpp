// Imports of real models agree with the original programs. The directory $FOVEA_FOREIGN_MODELS has
// opus/model_data.argosmodel, OPUS-MT zh→en as an Argos package, and opus-zh-en.jsonl, the results
// of CTranslate2 in float32.

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "decode/model_bundle.h"
#include "decode/translator.h"
#include "importer/import_model.h"
#include "temporary.h"

namespace fovea {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::vector<Json> read_lines(const std::string& path) {
  std::vector<Json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

TEST(RealModels, OpusMtAgreesWithCTranslate2) {
  const char* folder = std::getenv("FOVEA_FOREIGN_MODELS");
  if (folder == nullptr) GTEST_SKIP() << "set FOVEA_FOREIGN_MODELS to the directory of the models";
  const fs::path models(folder);
  const std::string package = models / "opus" / "model_data.argosmodel";
  const std::string results = models / "opus-zh-en.jsonl";
  if (!fs::exists(package) || !fs::exists(results))
    GTEST_SKIP() << folder << " has no opus/model_data.argosmodel or no opus-zh-en.jsonl";

  const TemporaryFolder out;
  ImportedModel imported = read_foreign_model({package, "", ""});
  const GenerationConfig generation = imported.config.generation;
  write_imported(imported, out.path(), StoredType::F32);
  const ModelBundle bundle = load_package(out.path());
  const std::vector<Json> lines = read_lines(results);
  ASSERT_GT(lines.size(), 50u);
  std::vector<std::string> sources;
  for (const Json& line : lines) {
    sources.push_back(line["source"]);
    const auto ids = bundle.source.encode(sources.back());
    EXPECT_EQ(bundle.source.pieces(ids), line["pieces"].get<std::vector<std::string>>());
  }
  for (const int64_t beam : {4, 1}) {
    TranslateOptions options;
    options.search = {.beam = beam, .length_penalty = 1};
    options.search.max_length = generation.max_length;
    const Translator translator({bundle.model.get()}, bundle.source, bundle.target, options);
    const auto found = translator.translate(sources);
    int64_t same = 0, near = 0;
    for (size_t i = 0; i < lines.size(); ++i) {
      const Json& expected = lines[i]["float32_beam" + std::to_string(beam)];
      const bool equal = found[i].text == expected["text"].get<std::string>();
      same += equal;
      near +=
          equal && std::abs(found[i].n_best.front().score - expected["score"].get<double>()) < 1e-3;
    }
    const auto total = static_cast<double>(lines.size());
    std::printf("beam %d: %ld of %zu lines equal, %ld with scores within 1e-3\n",
                static_cast<int>(beam), static_cast<long>(same), lines.size(),
                static_cast<long>(near));
    EXPECT_GE(static_cast<double>(same), 0.99 * total) << beam;
    EXPECT_EQ(near, same) << beam;
  }
}

}  // namespace
}  // namespace fovea
