#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/signals.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/model_options.h"

namespace {

using fovea::ExitCode;

constexpr const char* kAbout =
    "Fovea trains, runs and visualises neural sequence-to-sequence models with attention.\n\n"
    "Getting started:\n"
    "  fovea translate \"A small dog runs through the snow.\"\n"
    "  fovea show \"A small dog runs through the snow.\"\n"
    "  fovea train -c recipes/toy.yml -o toy        # trains a small model in a minute";

constexpr const char* kFooter =
    "'fovea COMMAND --help' explains a command and gives examples. Results go to standard output,\n"
    "messages to standard error. Exit codes: 0 success, 1 any other error, 2 wrong usage, 3 bad\n"
    "data, 4 bad model file, 5 file system error, 6 out of memory, 7 training diverged.";

// Prints an error and returns the exit code of the program.
int report_error(ExitCode code, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "fovea: %s\n", message.c_str());
  return static_cast<int>(code);
}

void add_commands(fovea::Program& program) {
  fovea::add_translate(program);
  fovea::add_show(program);
  fovea::add_score(program);
  fovea::add_align(program);
  fovea::add_classify(program);
  fovea::add_evaluate(program);
  fovea::add_vocab(program);
  fovea::add_embed(program);
  fovea::add_neighbours(program);
  fovea::add_train(program);
  fovea::add_average(program);
  fovea::add_compare(program);
  fovea::add_serve(program);
  fovea::add_bench(program);
  fovea::add_inspect(program);
  fovea::add_doctor(program);
}

// Opens /dev/null for each standard descriptor that is closed. Otherwise the next opened file would
// get its number, and output would be written into that file. The access mode is the opposite of
// the usual one, so reading input and writing results still fail. Log lines are discarded.
void reserve_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
}

int run(const std::vector<std::string>& words) {
  fovea::Program program(kAbout, kFooter);
  fovea::add_global_options(program);
  add_commands(program);
  program.run(words);
  return fovea::stop_exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe is an error: exit code 5
  try {
    return run({argv + std::min(argc, 1), argv + argc});
  } catch (const fovea::Error& error) {
    return report_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report_error(ExitCode::memory,
                        "out of memory; lower --batch-tokens or --beam, or close "
                        "other programs");
  } catch (const std::exception& error) {
    return report_error(ExitCode::unexpected, std::string("unexpected error: ") + error.what());
  }
}
