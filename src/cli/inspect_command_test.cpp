#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/model_description.h"
#include "support/command_run.h"

namespace fovea {
namespace {

const std::string kModel = FOVEA_SOURCE "/models/gallery/transformer";

class Inspect : public CommandTest {
 protected:
  // A copy of the model that a test can damage.
  std::string copy() {
    const std::string directory = folder_ / "copy";
    std::filesystem::copy(kModel, directory);
    return directory;
  }
};

TEST_F(Inspect, DescribesConfigurationAndFiles) {
  const auto json = nlohmann::json::parse(output({"inspect", kModel, "--json"}));
  EXPECT_EQ(json["directory"], kModel);
  EXPECT_EQ(json["model"]["type"], "transformer");
  EXPECT_EQ(json["model"]["size"], 96);
  EXPECT_EQ(json["model"]["final_norm"], false);
  EXPECT_EQ(json["model"]["dropout"], 0.1);
  EXPECT_EQ(json["weights"]["file"], "model.safetensors");
  EXPECT_EQ(json["weights"]["checksums"], "verified");
  EXPECT_EQ(json["weights"]["bytes"], std::filesystem::file_size(kModel + "/model.safetensors"));
  EXPECT_EQ(json["vocabulary"]["source_pieces"], 2000);
  EXPECT_EQ(json["vocabulary"]["joint"], true);
}

TEST_F(Inspect, ThePartsHaveAllParameters) {
  const auto json = describe_model(kModel);
  int64_t sum = 0;
  for (const auto& [part, size] : json["parts"].items()) sum += size.get<int64_t>();
  EXPECT_EQ(json["parameters"], sum);
  EXPECT_TRUE(json["parts"].contains("encoder/layers/2"));
  EXPECT_FALSE(json["parts"].contains("encoder/layers/3"));
  EXPECT_EQ(json["parts"]["encoder/layers/0"], json["parts"]["encoder/layers/2"]);
}

TEST_F(Inspect, TextHasTheSameNumbersInNarrowLines) {
  const auto json = describe_model(kModel);
  const std::string text = output({"inspect", kModel});
  EXPECT_EQ(text, description_text(json));
  EXPECT_TRUE(text.starts_with(kModel + "\n  model        type transformer, ")) << text;
  EXPECT_TRUE(has(text, "2,000 source and 2,000 target pieces")) << text;
  EXPECT_TRUE(has(text, "checksums verified")) << text;
  const size_t first = text.find('\n');
  const std::string rest = text.substr(first, text.find("\n  parameters") - first);
  for (size_t at = 0; at + 1 < rest.size(); at = rest.find('\n', at + 1)) {
    const std::string line = rest.substr(at + 1, rest.find('\n', at + 1) - at - 1);
    EXPECT_LE(line.size(), 80u) << line;
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST_F(Inspect, TheHistoryShowsTheLastFiveValidations) {
  auto json = describe_model(kModel);
  json["history"] = nullptr;
  EXPECT_TRUE(has(description_text(json), "  history      no metrics.jsonl\n"));
  json["history"] = {{"validations", nlohmann::ordered_json::array()}};
  EXPECT_TRUE(has(description_text(json), "  history      metrics.jsonl is empty\n"));
  json["history"]["last"] = {{"update", 70}, {"loss", 1.5}};
  for (int update = 10; update <= 70; update += 10)
    json["history"]["validations"].push_back({{"update", update}, {"ppl", 1.25}});
  const std::string text = description_text(json);
  EXPECT_TRUE(has(text, "  history      trained to update 70, loss 1.5\n")) << text;
  EXPECT_FALSE(has(text, "validated at update 20,")) << text;
  for (int update = 30; update <= 70; update += 10)
    EXPECT_TRUE(has(text, fmt::format("\n               validated at update {}, ppl 1.25", update)))
        << text;
}

TEST_F(Inspect, MetricsAreRead) {
  const std::string directory = copy();
  std::ofstream(directory + "/metrics.jsonl")
      << R"({"kind":"train","update":10,"epoch":1,"loss":2.5})"
      << "\n"
      << R"({"kind":"valid","update":10,"epoch":1,"ppl":7.5})"
      << "\n"
      << R"({"kind":"train","update":20,"epoch":2,"loss":1.5})"
      << "\n";
  const auto history = describe_model(directory)["history"];
  EXPECT_EQ(history["last"]["update"], 20);
  EXPECT_EQ(history["last"]["loss"], 1.5);
  ASSERT_EQ(history["validations"].size(), 1u);
  EXPECT_EQ(history["validations"][0]["ppl"], 7.5);
}

TEST_F(Inspect, ABundledModelIsFoundByName) {
  EXPECT_TRUE(has(output({"inspect", "transformer"}), " size 96,"));
  EXPECT_TRUE(has(output({"inspect"}), "/models/en-de\n"));
  expect_error(ExitCode::model, "did you mean 'transformer'?", {"inspect", "transfomer"});
}

TEST_F(Inspect, DamageIsReported) {
  const std::string directory = copy(), weights = directory + "/model.safetensors";
  {
    std::fstream file(weights, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(-4, std::ios::end);
    file.write("\x11\x22\x33\x44", 4);
  }
  expect_error(ExitCode::model, weights, {"inspect", directory});
  std::filesystem::resize_file(weights, 1000);
  expect_error(ExitCode::model, weights, {"inspect", directory});
  std::filesystem::remove(directory + "/config.yml");
  expect_error(ExitCode::model, "config.yml: missing", {"inspect", directory});
}

}  // namespace
}  // namespace fovea
