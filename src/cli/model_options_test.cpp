#include "cli/model_options.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/command_line.h"
#include "cli/input_warnings.h"
#include "temporary.h"

namespace fovea {
namespace {

// A program with a command that has the options of models.
class ModelOptions : public testing::Test {
 protected:
  explicit ModelOptions(ModelCount count = ModelCount::ensemble)
      : command_(program_.command("use", "Use a model")) {
    setenv("FOVEA_HOME", FOVEA_SOURCE, 0);
    unsetenv("FOVEA_MODEL");
    add_model_options(command_, choice_, count, DefaultModel::by_text);
    command_.runs([] {});
  }
  void parse(std::vector<std::string> words) {
    words.insert(words.begin(), "use");
    program_.run(words);
  }
  std::string usage_error(const std::vector<std::string>& words) {
    return message_of(ExitCode::usage, [&] { parse(words); });
  }

  Program program_{"About", "The end."};
  Command command_;
  ModelChoice choice_;
};

using Words = std::vector<std::string>;

TEST_F(ModelOptions, HaveDefaults) {
  parse({});
  EXPECT_TRUE(choice_.directories.empty());
  EXPECT_TRUE(choice_.languages.empty());
  EXPECT_EQ(choice_.device, "cpu");
  EXPECT_EQ(choice_.matmul_precision(), Precision::f32);
  EXPECT_EQ(device_of(choice_), Device{Cpu{}});
}

TEST_F(ModelOptions, ReachTheChoice) {
  parse({"-m", "a", "-m", "b", "--from", "en", "--to", "de", "--precision", "bf16"});
  EXPECT_EQ(choice_.directories, (Words{"a", "b"}));
  EXPECT_EQ(choice_.languages.from, "en");
  EXPECT_EQ(choice_.languages.to, "de");
  EXPECT_EQ(choice_.matmul_precision(), Precision::bf16);
}

TEST_F(ModelOptions, TheEnvironmentNamesAModel) {
  setenv("FOVEA_MODEL", "a", 1);
  parse({});
  unsetenv("FOVEA_MODEL");
  EXPECT_EQ(choice_.directories, Words{"a"});
}

TEST_F(ModelOptions, NamesOfDevicesAndPrecisions) {
  for (const char* name : {"cuda", "CUDA", "gpu", "GPU", "cuda:0"}) {
    parse({"--device", name});
    EXPECT_EQ(choice_.device, "cuda") << name;
  }
  EXPECT_NE(usage_error({"--device", "tpu"}).find("expected one of cpu, cuda, found 'tpu'"),
            std::string::npos);
  EXPECT_EQ(precision_named("f32"), Precision::f32);
  EXPECT_EQ(precision_named("bf16"), Precision::bf16);
  EXPECT_EQ(precision_named("int8"), Precision::int8);
  EXPECT_NE(usage_error({"--precision", "f16"}).find("expected one of f32, bf16, int8"),
            std::string::npos);
}

TEST_F(ModelOptions, LoadOneModelForEachName) {
  parse({"-m", "transformer", "-m", FOVEA_SOURCE "/models/gallery/transformer"});
  const auto bundles = load_models(choice_);
  ASSERT_EQ(bundles.size(), 2u);
  EXPECT_STREQ(bundles[0].config.type(), "transformer");
  EXPECT_EQ(models_of(bundles)[1], bundles[1].model.get());
}

TEST_F(ModelOptions, TheSampleChoosesABundledModel) {
  const auto loaded = [&](const Words& words, const char* sample) {
    choice_ = {};
    parse(words);
    const std::string directory =
        load_models(choice_, [&] { return std::string(sample); }).front().directory;
    return directory.substr(directory.rfind('/') + 1);
  };
  EXPECT_EQ(loaded({}, "A small dog runs through the snow."), "en-de");
  EXPECT_EQ(loaded({}, "Ein kleiner Hund läuft durch den Schnee."), "de-en");
  EXPECT_EQ(loaded({"--from", "en"}, "Ein kleiner Hund läuft durch den Schnee."), "en-de");
  EXPECT_EQ(loaded({"--to", "zh"}, "A small dog runs through the snow."), "en-zh");
}

TEST_F(ModelOptions, ModelsThatDoNotFit) {
  const auto fails = [&](ExitCode code, const std::string& part, const Words& words) {
    choice_ = {};
    parse(words);
    const std::string message = message_of(code, [&] { load_models(choice_); });
    EXPECT_NE(message.find(part), message.npos) << message;
  };
  fails(ExitCode::usage, "give only one of the two", {"-m", "en-de", "--to", "de"});
  fails(ExitCode::model, "translates in the opposite direction of", {"-m", "en-de", "-m", "de-en"});
  fails(ExitCode::model, "no bundled model translates from 'fr' to 'de'",
        {"--from", "fr", "--to", "de"});
}

class OneModel : public ModelOptions {
 protected:
  OneModel() : ModelOptions(ModelCount::one_that_labels) {}
};

TEST_F(OneModel, ThatLabelsHasNoLanguages) {
  EXPECT_NE(usage_error({"--from", "en"}).find("unknown option '--from'"), std::string::npos);
}

TEST(RecipeOptions, ReachTheirVariables) {
  Program program("About", "The end.");
  Command command = program.command("learn", "Learn");
  std::vector<std::string> assignments;
  std::string data, device = "cpu", precision;
  add_recipe_options(command, assignments, data, device, precision);
  command.runs([] {});
  program.run(
      {"learn", "--set", "a=1", "b=2", "--set", "c=3", "--data", "/d", "--precision", "bf16"});
  EXPECT_EQ(assignments, (Words{"a=1", "b=2", "c=3"}));
  EXPECT_EQ(data, "/d");
  EXPECT_EQ(precision, "bf16");
}

TEST(InputWarningsTest, NamesLinesAndTheLanguage) {
  const ModelBundle bundle = load_package(FOVEA_SOURCE "/models/en-de");
  const auto warned = [&](const std::vector<std::string>& lines) {
    testing::internal::CaptureStderr();
    InputWarnings(bundle).check_lines(lines, "in", 11);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(warned({"A small dog.", "Two men."}), "");
  const std::string chinese = warned({"A dog.", "我爱中国，我的家在北京。"});
  EXPECT_NE(chinese.find("in:12: "), chinese.npos) << chinese;
  EXPECT_NE(chinese.find("is -m right?"), chinese.npos) << chinese;
  const std::string german =
      warned({"Ein kleiner Hund läuft durch den tiefen Schnee.", "Er hat keine Angst."});
  EXPECT_NE(
      german.find("in: the text looks like German, and the model reads English; is -m right?"),
      german.npos)
      << german;
}

}  // namespace
}  // namespace fovea
