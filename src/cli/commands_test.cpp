#include "cli/commands.h"

#include <iterator>
#include <new>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "base/check.h"
#include "support/command_run.h"

namespace fovea {
namespace {

using Commands = CommandTest;

const char* const kNames[] = {"translate", "show",  "score",      "align",   "classify", "evaluate",
                              "vocab",     "embed", "neighbours", "train",   "import",   "average",
                              "compare",   "serve", "bench",      "inspect", "doctor"};

// The words of a text, sorted: CLI11 lists excluded options in any order.
std::multiset<std::string> words_of(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

TEST_F(Commands, TheHelpListsAllInOrder) {
  const std::string help = output({});
  EXPECT_TRUE(help.starts_with("Fovea trains, runs and visualises")) << help;
  size_t last = help.find("Subcommands");
  ASSERT_NE(last, help.npos);
  for (const char* name : kNames) {
    const size_t at = help.find("\n  " + std::string(name) + " ", last);
    EXPECT_NE(at, help.npos) << name;
    last = at;
  }
  EXPECT_EQ(output({"--help"}), help);
  EXPECT_EQ(output({"help"}), help);
}

TEST_F(Commands, EachHasHelpWithExamples) {
  for (const char* name : kNames) {
    const std::string help = output({name, "--help"});
    EXPECT_TRUE(has(help, "Usage: fovea " + std::string(name))) << help;
    EXPECT_TRUE(has(help, "Example")) << name;
    EXPECT_TRUE(has(help, "\n    fovea " + std::string(name)) || has(help, "| fovea ") ||
                has(help, "\n  fovea "))
        << name;
    EXPECT_TRUE(has(help, "All commands also accept --threads N, -q and --log-format")) << name;
    EXPECT_EQ(words_of(output({"help", name})), words_of(help));
  }
}

TEST_F(Commands, HelpOfASubcommand) {
  const std::string help = output({"bench", "train", "--help"});
  EXPECT_TRUE(has(help, "Usage: fovea bench train")) << help;
  EXPECT_EQ(output({"help", "bench", "train"}), help);
}

TEST_F(Commands, TheVersionIsPrinted) {
  EXPECT_EQ(output({"--version"}), "fovea " FOVEA_VERSION "\n");
}

TEST_F(Commands, AnErrorHasTheNameOfTheProgramAndAnExitCode) {
  const CommandResult result = run({"tranlate", "x"});
  EXPECT_EQ(result.code, 2);
  EXPECT_EQ(result.err,
            "fovea: unknown command 'tranlate'; did you mean 'translate'?\n"
            "Try 'fovea --help'.\n");
}

TEST_F(Commands, ExitCodesOfTheKindsOfErrors) {
  expect_error(ExitCode::usage, "--format: expected one of", {"translate", "--format", "xml"});
  expect_error(ExitCode::data, "first line without partner: ",
               {"evaluate", "-r", file("a", "x\n"), "-i", file("b", "x\ny\n")});
  expect_error(ExitCode::model, "no such model directory", {"inspect", folder_ / "none"});
  expect_error(ExitCode::files, folder_ / "none", {"translate", "-i", folder_ / "none"});
}

TEST_F(Commands, ExceptionsBecomeExitCodes) {
  const auto error_of = [](const std::function<int()>& action, int code) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(exit_code_of(action), code);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(error_of([] { return 143; }, 143), "");
  EXPECT_EQ(error_of([]() -> int { fail(ExitCode::diverged, "lower `rate`"); }, 7),
            "fovea: lower --rate\n");
  EXPECT_EQ(error_of([]() -> int { throw std::bad_alloc(); }, 6),
            "fovea: out of memory; lower --batch-tokens or --beam, or close other programs\n");
  EXPECT_EQ(error_of([]() -> int { throw std::runtime_error("broken"); }, 1),
            "fovea: unexpected error: broken\n");
}

TEST_F(Commands, LogFormatsAndQuiet) {
  const Words words{"vocab", "--kind", "words", "-o", folder_ / "v.txt", file("text", "a b a\n")};
  const auto with = [&](Words more) {
    more.insert(more.begin(), words.begin(), words.end());
    return messages(more);
  };
  EXPECT_TRUE(has(with({}), "entries of kind words"));
  EXPECT_EQ(with({"-q"}), "");
  const std::string lines = with({"--log-format", "json"});
  bool wrote = false;
  for (size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
    const auto line = nlohmann::json::parse(lines.substr(at, lines.find('\n', at) - at));
    EXPECT_TRUE(line.contains("time"));
    wrote = wrote || has(line.value("message", ""), "wrote " + folder_ / "v.txt");
  }
  EXPECT_TRUE(wrote) << lines;
  expect_error(ExitCode::usage, "--log-format: expected one of auto, tty, plain, json, found 'xml'",
               {"doctor", "--log-format", "xml"});
}

TEST_F(Commands, ThreadsComeFromTheOptionOrTheEnvironment) {
  EXPECT_TRUE(has(output({"doctor", "--threads", "1"}), ", 1 threads in use"));
  setenv("FOVEA_THREADS", "3", 1);
  const std::string found = output({"doctor"});
  const std::string chosen = output({"doctor", "--threads", "2"});
  setenv("FOVEA_THREADS", "many", 1);
  expect_error(ExitCode::usage, "expected a whole number from 0 to 1024, found 'many'", {"doctor"});
  unsetenv("FOVEA_THREADS");
  EXPECT_TRUE(has(found, ", 3 threads in use")) << found;
  EXPECT_TRUE(has(chosen, ", 2 threads in use")) << chosen;
}

}  // namespace
}  // namespace fovea
