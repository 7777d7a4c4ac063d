// fovea compare, fovea serve and fovea doctor: what they do before models are trained or served.

#include <filesystem>

#include "support/command_run.h"

namespace fovea {
namespace {

class Compare : public CommandTest {
 protected:
  const std::string text_ = file("text", "a dog\na cat\n");
  const std::string recipe_ =
      file("two.yml",
           "model: {type: recurrent, size: 8, attention: global}\n"
           "data: {train_source: " +
               text_ + ", train_target: " + text_ + ", valid_source: " + text_ +
               ", valid_target: " + text_ + ", test_source: " + text_ + ", test_target: " + text_ +
               "}\nvocabulary: {kind: words, size: 0}\ntrain: {updates: 2}\n"
               "variants: {global: {}, none: {model.attention: none}}\n");
};

TEST_F(Compare, DryRunListsTheModels) {
  const std::string text = output({"compare", "-c", recipe_, "--dry-run", "-o", folder_ / "out"});
  EXPECT_TRUE(has(text, "global")) << text;
  EXPECT_TRUE(has(text, "none")) << text;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "out"));
}

TEST_F(Compare, Errors) {
  expect_error(ExitCode::usage, "--config is required: Recipe with variants", {"compare"});
  expect_error(ExitCode::usage,
               "--only local-p: " + recipe_ + " has no such variant; its variants are global, none",
               {"compare", "-c", recipe_, "--only", "local-p", "--dry-run"});
  std::filesystem::create_directory(folder_ / "trained");
  file("trained/config.yml", "");
  expect_error(ExitCode::usage, "holds a trained model; name another folder with -o",
               {"compare", "-c", recipe_, "-o", folder_ / "trained"});
  expect_error(ExitCode::usage, "--at-once: expected a whole number from 1 to 64, found '0'",
               {"compare", "-c", recipe_, "--at-once", "0"});
  expect_error(ExitCode::usage, "--precision: expected one of f32, bf16, found 'int8'",
               {"compare", "-c", recipe_, "--precision", "int8"});
  expect_error(ExitCode::usage, "--set model.sise=3: unknown key 'model.sise'",
               {"compare", "-c", recipe_, "--set", "model.sise=3", "--dry-run"});
}

using Serve = CommandTest;

TEST_F(Serve, OptionsAreCheckedBeforeAnythingIsServed) {
  const auto fails = [&](ExitCode code, const std::string& part, Words more) {
    more.insert(more.begin(), {"serve", "-q"});
    expect_error(code, part, more);
  };
  fails(ExitCode::usage,
        "--require-api-key: no keys are given; name a file of keys with --api-keys",
        {"--require-api-key"});
  const std::string keys = file("keys", "# none\n");
  fails(ExitCode::usage, keys + ": contains no key, but --require-api-key needs one",
        {"--require-api-key", "--api-keys", keys});
  fails(ExitCode::usage, "--host: 'nowhere' is not an address",
        {"--host", "nowhere", "-m", "transformer"});
  fails(ExitCode::usage, "--port: expected a whole number from 0 to 65535, found '70000'",
        {"--port", "70000"});
  fails(ExitCode::usage, "--port needs N from 0 to 65535: ", {"--port"});
  fails(ExitCode::model, "did you mean 'local-p'?", {"-m", "en-de=local_p"});
  fails(ExitCode::model,
        "/metrics.jsonl: missing; --run needs a directory of 'fovea train'; use -m "
        "for other model directories",
        {"--run", FOVEA_SOURCE "/models/gallery/transformer", "--port", "0"});
  fails(ExitCode::usage, "--timeout: expected a number from 0.1 to 86400, found '0'",
        {"--timeout", "0"});
}

TEST_F(Serve, AnEmptyKeyFileIsNoticed) {
  const std::string keys = file("keys", "\n");
  const CommandResult result =
      run({"serve", "--api-keys", keys, "--host", "nowhere", "-m", "transformer"});
  EXPECT_TRUE(has(result.err, "--api-keys " + keys + ": contains no key: requests without a key"))
      << result.err;
}

using Doctor = CommandTest;

TEST_F(Doctor, HasALineForEachCheck) {
  const std::string text = output({"doctor"});
  std::istringstream lines(text);
  std::vector<std::string> names;
  for (std::string line; std::getline(lines, line);) {
    const std::string mark = line.substr(0, 6);
    EXPECT_TRUE(mark == "ok    " || mark == "note  ") << line;
    names.push_back(line.substr(6, line.find(' ', 6) - 6));
  }
  EXPECT_EQ(names, (Words{"version", "processor", "kernels", "precisions", "cores", "memory",
                          "libraries", "devices", "files", "model", "models", "gallery"}));
  EXPECT_TRUE(has(text, "fovea " FOVEA_VERSION)) << text;
  EXPECT_TRUE(has(text, "\"Good morning.\" → \"Guten Morgen")) << text;
  EXPECT_TRUE(has(text, "for -m: additive, ")) << text;
}

TEST_F(Doctor, AFolderThatCannotBeWrittenIsAFailure) {
  const char* old = getenv("TMPDIR");
  const std::string before = old ? old : "";
  CommandResult result;
  {
    const std::string here = folder_.path();  // made before TMPDIR changes
    setenv("TMPDIR", "/proc/none", 1);
    result.code = exit_code_of([&] {
      testing::internal::CaptureStderr();
      const int code = run_program({"doctor", "-q"});
      result.err = testing::internal::GetCapturedStderr();
      return code;
    });
  }
  old ? setenv("TMPDIR", before.c_str(), 1) : unsetenv("TMPDIR");
  EXPECT_EQ(result.code, 1);
  EXPECT_TRUE(has(result.err, "fovea: 1 of 12 checks failed")) << result.err;
}

}  // namespace
}  // namespace fovea
