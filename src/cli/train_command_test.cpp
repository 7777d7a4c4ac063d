#include <filesystem>

#include "base/signals.h"
#include "support/command_run.h"

namespace fovea {
namespace {

// Trainings of a network that takes seconds.
class Train : public CommandTest {
 protected:
  Train() {
    std::string text;
    for (int i = 0; i < 40; ++i) text += "a small dog runs to dog " + std::to_string(i % 5) + "\n";
    text_ = file("text", text);
  }
  ~Train() override { request_stop(0); }

  Words words(const Words& more) const {
    Words all{"train", "--threads", "1"};
    for (const std::string& setting :
         {"data.train_source=" + text_, "data.train_target=" + text_, "data.valid_source=" + text_,
          "data.valid_target=" + text_, std::string("vocabulary.kind=words"),
          std::string("vocabulary.size=0"), std::string("model.encoder_layers=1"),
          std::string("model.decoder_layers=1"), std::string("model.size=8"),
          std::string("model.inner=8"), std::string("model.heads=2"),
          std::string("schedule.warmup=0"), std::string("train.updates=4")}) {
      all.push_back("--set");
      all.push_back(setting);
    }
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  std::string text_;
};

TEST_F(Train, DumpConfigPrintsARecipeThatIsReadBack) {
  const std::string recipe = output({"train", "--dump-config", "--set", "model.size=96"});
  EXPECT_TRUE(has(recipe, "\n  size: 96\n")) << recipe;
  EXPECT_EQ(output({"train", "--dump-config", "-c", file("r.yml", recipe)}), recipe);
  const std::string precise =
      output({"train", "--dump-config", "-c", folder_ / "r.yml", "--precision", "bf16"});
  EXPECT_TRUE(has(precise, "precision: bf16")) << precise;
}

TEST_F(Train, DryRunEstimatesAndWritesNothing) {
  const std::string text = output(words({"--dry-run", "-o", folder_ / "model"}));
  EXPECT_TRUE(text.starts_with("parameters          ")) << text;
  EXPECT_TRUE(has(text, " for 4 updates, without validation\n")) << text;
  EXPECT_FALSE(has(text, "shorter ")) << text;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "model"));
}

TEST_F(Train, WritesAModelWithACardAndResumes) {
  const std::string model = folder_ / "my model";
  const std::string log = messages(words({"-o", model}));
  EXPECT_TRUE(has(log, "model in " + model + ": best ppl ")) << log;
  EXPECT_TRUE(has(log, "try: fovea translate -m '" + model + "' \"a small dog runs to dog 0\""))
      << log;
  const std::string card = content("my model/README.md");
  EXPECT_TRUE(has(card, "\n# my model\n")) << card;
  EXPECT_TRUE(has(card,
                  "```\nfovea translate -m MODEL_DIR \"a small dog runs to dog 0\"\n"
                  "fovea show -m MODEL_DIR \"a small dog runs to dog 0\"\n```\n"))
      << card;
  EXPECT_EQ(output({"translate", "-q", "-m", model, "-b", "1", "a", "dog"}).back(), '\n');

  const std::string resumed = messages(words({"-o", model, "--set", "train.updates=6"}));
  EXPECT_TRUE(has(resumed, "resumed from update 4")) << resumed;
  expect_error(ExitCode::data,
               "accept it with --resume-anyway, choose another directory, or start "
               "over with --restart",
               words({"-o", model, "--set", "train.seed=9", "-q"}));
  const std::string restarted =
      messages(words({"-o", model, "--restart", "--set", "train.seed=9"}));
  EXPECT_FALSE(has(restarted, "resumed from")) << restarted;
}

TEST_F(Train, WarnsAboutSettingsThatDoLittle) {
  const std::string log = messages(
      words({"--dry-run", "--set", "schedule.warmup=4000", "--set", "data.valid_source=[]", "--set",
             "data.valid_target=[]", "--set", "vocabulary.character_coverage=0.99"}));
  EXPECT_TRUE(has(log,
                  "schedule.warmup: the learning rate rises for 4,000 updates, but the run "
                  "has only 4"))
      << log;
  EXPECT_TRUE(has(log, "no validation text: training cannot stop early")) << log;
  EXPECT_TRUE(has(log, "vocabulary.character_coverage: 0.99 has no effect")) << log;
}

TEST_F(Train, UsageErrors) {
  expect_error(ExitCode::usage, "name a recipe with -c FILE", {"train", "-o", folder_ / "m"});
  expect_error(ExitCode::usage, "name the model directory with -o MODEL_DIR", words({}));
  expect_error(ExitCode::usage, "set both in a recipe (-c FILE) or with --set",
               {"train", "-o", folder_ / "m", "--set", "train.seed=2"});
  expect_error(ExitCode::usage, "--resume-anyway and --restart exclude each other",
               words({"--resume-anyway", "--restart"}));
  expect_error(ExitCode::files, "set the folder of the text with --data DIR",
               words({"-o", folder_ / "m", "--set", "data.test_source=no.en", "--set",
                      "data.test_target=no.de"}));
  expect_error(ExitCode::data, "variants: only 'fovea compare -c FILE' accepts this key",
               {"train", "-o", folder_ / "m", "-c", file("v.yml", "variants: [none]\n")});
  const std::string recipe = file("typo.yml", "model: {zzzzzz: 3}\n");
  expect_error(ExitCode::data, recipe + ":1: unknown key 'model.zzzzzz'; --dump-config lists",
               {"train", "-o", folder_ / "m", "-c", recipe});
  EXPECT_FALSE(std::filesystem::exists(folder_ / "m"));
}

TEST_F(Train, AModelWithoutCheckpointsIsNotOverwritten) {
  std::filesystem::create_directory(folder_ / "m");
  file("m/model.safetensors", "precious");
  expect_error(ExitCode::usage, "choose another directory with -o, or start over with --restart",
               words({"-o", folder_ / "m", "-q"}));
  EXPECT_EQ(content("m/model.safetensors"), "precious");
}

TEST_F(Train, ALimitOfMemoryIsKept) {
  expect_error(ExitCode::memory,
               "raise --workspace, lower the batch size (batch.tokens, "
               "--batch-tokens) or --beam, or use a smaller model",
               words({"-o", folder_ / "m", "-q", "--workspace", "0.001"}));
}

}  // namespace
}  // namespace fovea
