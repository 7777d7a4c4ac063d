#include "cli/command_line.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "temporary.h"

namespace fovea {
namespace {

// A program with one command, and the variables of its options.
class Options : public testing::Test {
 protected:
  Options() : command_(program_.command("speak", "Say something")) {
    program_.option("--threads", threads_, "How many")
        .within(0, 8)
        .from_environment("SPEAK_THREADS");
    command_.option("words", words_, "What to say").takes("WORD");
    command_.option("--tone", tone_, "How")
        .among({"loud", "soft"})
        .synonyms({{"quiet", "soft"}})
        .ignore_case();
    command_.option("--not", omitted_, "Words to omit").one_value_each();
    command_.option("--also", added_, "Words to add").repeated().split_at_commas();
    Command group = command_.group("Speed");
    Option rate = group.option("--rate", rate_, "Words per second").within(0.5, 2.0);
    group.option("--volume", volume_, "Of the voice").within(0, 9).with_default();
    group.option("--pause", pause_, "Seconds between").not_negative().excludes(rate);
    group.flag("--sing", sing_, "With a tune").needs(rate);
    command_.runs([this] { ++runs_; });
  }
  ~Options() override { unsetenv("SPEAK_THREADS"); }

  std::string usage_error(const std::vector<std::string>& words) {
    return message_of(ExitCode::usage, [&] { program_.run(words); });
  }

  Program program_{"About", "The end."};
  Command command_;
  std::vector<std::string> words_, omitted_, added_;
  std::string tone_ = "loud";
  int threads_ = 1, volume_ = 1, runs_ = 0;
  double rate_ = 1;
  std::optional<float> pause_;
  bool sing_ = false;
};

using Words = std::vector<std::string>;

TEST_F(Options, FromTheEnvironmentAreReportedByTheirVariables) {
  setenv("SPEAK_THREADS", "abc", 1);
  EXPECT_EQ(usage_error({"speak"}).find("$SPEAK_THREADS: expected a whole number from 0 to 8"), 0u);
  EXPECT_EQ(usage_error({"speak", "--threads", "x"}).find("--threads: expected"), 0u);
  EXPECT_EQ(usage_error({"speak", "--threads=x"}).find("--threads: expected"), 0u);
}

TEST_F(Options, HaveTheVersionInThreeForms) {
  for (const char* form : {"--version", "-V", "version"}) {
    testing::internal::CaptureStdout();
    program_.run({form});
    EXPECT_EQ(testing::internal::GetCapturedStdout().find("fovea "), 0u) << form;
  }
  EXPECT_EQ(runs_, 0);
}

TEST_F(Options, ReachTheirVariables) {
  program_.run({"speak", "a", "--rate=1.5", "b", "--sing", "--tone", "quiet", "--threads", "3"});
  EXPECT_EQ(runs_, 1);
  EXPECT_EQ(words_, (Words{"a", "b"}));
  EXPECT_EQ(tone_, "soft");
  EXPECT_EQ(rate_, 1.5);
  EXPECT_EQ(threads_, 3);
  EXPECT_TRUE(sing_);
  EXPECT_FALSE(pause_.has_value());
}

TEST_F(Options, IgnoreCaseIfRequested) {
  program_.run({"speak", "--tone", "Loud"});
  EXPECT_EQ(tone_, "loud");
  program_.run({"speak", "--tone", "QUIET"});
  EXPECT_EQ(tone_, "soft");
}

TEST_F(Options, TakeOneValueEachOrAllThatFollow) {
  program_.run(
      {"speak", "--not", "x", "a", "--not", "y", "b", "--also", "v", "w", "--also", "x,z"});
  EXPECT_EQ(words_, (Words{"a", "b"}));
  EXPECT_EQ(omitted_, (Words{"x", "y"}));
  EXPECT_EQ(added_, (Words{"v", "w", "x", "z"}));
}

TEST_F(Options, AreGivenByTheUserOrTheEnvironment) {
  program_.run({"speak", "--rate", "2"});
  EXPECT_TRUE(command_.given("--rate"));  // an option of a group
  EXPECT_FALSE(command_.given("--pause"));
  EXPECT_FALSE(command_.given("--threads"));
  setenv("SPEAK_THREADS", "5", 1);
  program_.run({"speak"});
  EXPECT_TRUE(command_.given("--threads"));  // an option of the program
  EXPECT_EQ(threads_, 5);
}

TEST_F(Options, ThatAreInvalidFailBeforeTheCommandRuns) {
  EXPECT_EQ(usage_error({"speek"}),
            "unknown command 'speek'; did you mean 'speak'?\nTry 'fovea --help'.");
  EXPECT_EQ(usage_error({"speak", "--tome", "soft"}),
            "unknown option '--tome'; did you mean '--tone'?\nTry 'fovea speak --help'.");
  EXPECT_EQ(usage_error({"speak", "--thread", "3"}),
            "unknown option '--thread'; did you mean '--threads'?\nTry 'fovea speak --help'.");
  EXPECT_EQ(usage_error({"--tone=soft", "speak", "a"}),
            "option '--tone' must follow the command: fovea speak --tone ...\n"
            "Try 'fovea speak --help'.");
  EXPECT_EQ(usage_error({"--tone", "soft"}),
            "option '--tone' must follow the command: fovea COMMAND --tone ...\n"
            "Try 'fovea --help'.");
  EXPECT_EQ(usage_error({"help", "speek"}),
            "unknown command 'speek'; did you mean 'speak'?\nTry 'fovea --help'.");
  const auto error_for = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "speak");
    const std::string message = usage_error(words);
    return message.substr(0, message.find('\n'));
  };
  EXPECT_EQ(error_for({"--tone", "lout"}),
            "--tone: expected one of loud, soft, found 'lout'; did you mean 'loud'?");
  EXPECT_EQ(error_for({"--rate", "3"}), "--rate: expected a number from 0.5 to 2, found '3'");
  EXPECT_EQ(error_for({"--rate", "fast"}), "--rate: expected a number from 0.5 to 2, found 'fast'");
  EXPECT_EQ(error_for({"--pause", "-1"}), "--pause: expected a number from 0, found '-1'");
  EXPECT_EQ(error_for({"--threads", "1.5"}),
            "--threads: expected a whole number from 0 to 8, found '1.5'");
  EXPECT_EQ(error_for({"--volume", "much"}),
            "--volume: expected a whole number from 0 to 9, found 'much'");
  EXPECT_EQ(error_for({"--sing"}), "--sing requires --rate; give both");
  EXPECT_EQ(error_for({"--sing=much", "--rate", "1"}), "--sing: expected no value, found 'much'");
  EXPECT_EQ(error_for({"--rate", "1", "--pause", "1"}),
            "--rate and --pause exclude each other; give only one of them");
  EXPECT_EQ(error_for({"--rate", "1", "--rate", "2"}),
            "--rate is given more than once, but accepts one value: Words per second");
  EXPECT_EQ(error_for({"--rate"}), "--rate needs N from 0.5 to 2: Words per second");
  EXPECT_EQ(error_for({"--tone"}), "--tone needs {loud,soft}: How");
  EXPECT_EQ(runs_, 0);
}

TEST_F(Options, HelpIsPrintedAndNothingRuns) {
  testing::internal::CaptureStdout();
  program_.run({"speak", "--help"});
  const std::string help = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(help.starts_with("Say something\nUsage: fovea speak [OPTIONS] [words...]")) << help;
  EXPECT_NE(help.find("\nSpeed:\n  --rate N from 0.5 to 2 "), std::string::npos) << help;
  EXPECT_NE(help.find("\n  --volume N from 0 to 9 [1] "), std::string::npos) << help;
  EXPECT_NE(help.find("\n  --tone {loud,soft} "), std::string::npos) << help;
  testing::internal::CaptureStdout();
  program_.run({"help", "speak"});
  EXPECT_EQ(testing::internal::GetCapturedStdout(), help);
  testing::internal::CaptureStdout();
  program_.run({"help"});
  EXPECT_TRUE(testing::internal::GetCapturedStdout().starts_with("About\n"));
  testing::internal::CaptureStdout();
  program_.run({});
  EXPECT_TRUE(testing::internal::GetCapturedStdout().starts_with("About\n"));
  EXPECT_EQ(runs_, 0);
}

}  // namespace
}  // namespace fovea
