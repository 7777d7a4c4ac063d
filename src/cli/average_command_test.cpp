#include <filesystem>
#include <nlohmann/json.hpp>

#include "support/command_run.h"

namespace fovea {
namespace {

using Average = CommandTest;
const std::string kModel = FOVEA_SOURCE "/models/gallery/transformer";

TEST_F(Average, TheMeanOfAModelAndItselfIsTheModel) {
  const std::string mean = folder_ / "mean";
  const std::string log = messages({"average", "-o", mean, "transformer", kModel});
  EXPECT_TRUE(has(log, "wrote " + mean + ": the mean of 2 files, ")) << log;
  const Words sentence{"translate", "-q", "-b", "1", "A small dog.", "-m"};
  const auto with = [&](const std::string& model) {
    Words words = sentence;
    words.push_back(model);
    return output(words);
  };
  EXPECT_EQ(with(mean), with(kModel));
}

TEST_F(Average, WeightsCanBeStoredInHalfTheSpace) {
  const std::string f32 = folder_ / "f32", bf16 = folder_ / "bf16";
  messages({"average", "-o", f32, kModel});
  messages({"average", "-o", bf16, "--store", "bf16", kModel});
  const auto bytes = [](const std::string& model) {
    return std::filesystem::file_size(model + "/model.safetensors");
  };
  EXPECT_LT(bytes(bf16), bytes(f32) * 6 / 10);
  const auto json = nlohmann::json::parse(output({"inspect", "--json", bf16}));
  EXPECT_TRUE(json["weights"]["types"].contains("BF16")) << json["weights"];
}

TEST_F(Average, AModelIsReplacedOnlyByForce) {
  const std::string mean = folder_ / "mean";
  messages({"average", "-o", mean, kModel});
  file("mean/target.txt", "of an older model");
  expect_error(ExitCode::usage, "the directory already holds a model",
               {"average", "-o", mean, kModel});
  EXPECT_EQ(content("mean/target.txt"), "of an older model");
  messages({"average", "--force", "-o", mean, kModel});
  EXPECT_FALSE(std::filesystem::exists(mean + "/target.txt"));
  EXPECT_EQ(run({"inspect", mean}).code, 0);
}

TEST_F(Average, Errors) {
  expect_error(ExitCode::usage, "--output is required: ", {"average", kModel});
  expect_error(ExitCode::usage, "is required: Model directories", {"average", "-o", "x"});
  expect_error(ExitCode::model, "did you mean 'de-en'?", {"average", "-o", folder_ / "m", "de-ne"});
  expect_error(ExitCode::model, "", {"average", "-o", folder_ / "m", kModel, "en-de"});
  const std::string lone = file("lone.safetensors", "x");
  expect_error(ExitCode::model, lone + ": no config.yml in this folder or its parents",
               {"average", "-o", folder_ / "m", lone});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m"));
}

}  // namespace
}  // namespace fovea
