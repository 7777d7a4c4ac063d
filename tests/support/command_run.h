#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "temporary.h"

namespace fovea {

// What a command printed, and the exit code of the program.
struct CommandResult {
  int code = 0;
  std::string out, err;
};

// A folder with files, in which commands of the program run in this process.
class CommandTest : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // Bundled models are found by name; standard input has the text `input`.
  CommandResult run(const Words& words, const std::string& input = "") {
    setenv("FOVEA_HOME", FOVEA_SOURCE, 0);
    const int old = dup(STDIN_FILENO);
    const int in = open(file("stdin", input).c_str(), O_RDONLY | O_CLOEXEC);
    dup2(in, STDIN_FILENO);
    close(in);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    CommandResult result;
    result.code = run_program(words);
    result.out = testing::internal::GetCapturedStdout();
    result.err = testing::internal::GetCapturedStderr();
    dup2(old, STDIN_FILENO);
    close(old);
    return result;
  }

  // The output of a command that must succeed.
  std::string output(const Words& words, const std::string& input = "") {
    const CommandResult result = run(words, input);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.out;
  }

  // The messages of a command that must succeed.
  std::string messages(const Words& words, const std::string& input = "") {
    const CommandResult result = run(words, input);
    EXPECT_EQ(result.code, 0) << result.err;
    return result.err;
  }

  // Expects that a command fails with this code, prints `part` and has no output.
  void expect_error(ExitCode code, const std::string& part, const Words& words,
                    const std::string& input = "") {
    const CommandResult result = run(words, input);
    EXPECT_EQ(result.code, static_cast<int>(code)) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err << "expected: " << part;
    EXPECT_EQ(result.out, "");
  }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return folder_ / name;
  }

  std::string content(const std::string& name) const {
    std::ostringstream text;
    text << std::ifstream(folder_ / name, std::ios::binary).rdbuf();
    return text.str();
  }

  static bool has(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  TemporaryFolder folder_;
};

}  // namespace fovea
