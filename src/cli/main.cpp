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
#include "cli/align.h"
#include "cli/average.h"
#include "cli/bench.h"
#include "cli/classify.h"
#include "cli/compare.h"
#include "cli/doctor.h"
#include "cli/embed.h"
#include "cli/evaluate.h"
#include "cli/inspect.h"
#include "cli/neighbours.h"
#include "cli/options.h"
#include "cli/score.h"
#include "cli/serve.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/train.h"
#include "cli/translate.h"
#include "cli/vocab.h"

namespace {

using fovea::Exit;

constexpr const char* kAbout =
    "Fovea trains, runs and shows neural sequence-to-sequence models with attention.\n\n"
    "To begin:\n"
    "  fovea translate \"A small dog runs through the snow.\"\n"
    "  fovea show \"A small dog runs through the snow.\"\n"
    "  fovea train -c recipes/toy.yml -o toy        # a model of your own, in a minute";

constexpr const char* kFooter =
    "fovea COMMAND --help explains a command by examples. Results go to standard output, all else\n"
    "to standard error. Exit codes: 0 done, 2 wrong usage, 3 bad data, 4 bad model file, 5 file\n"
    "system, 6 memory, 7 training diverged, 1 anything else.";

int exit_code(Exit code) { return static_cast<int>(code); }

int complain(Exit code, const std::string& message) {
  std::fflush(stdout);
  std::fprintf(stderr, "fovea: %s\n", message.c_str());
  return exit_code(code);
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

// Where one of the three is closed, the next file opened would take its number and get what is
// printed. What reads or writes results still fails; log lines go nowhere.
void hold_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
}

int run(const std::vector<std::string>& words) {
  fovea::Program program(kAbout, kFooter);
  fovea::add_session(program);
  add_commands(program);
  program.run(words);
  return fovea::stop_exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_files();
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an ordinary error: exit code 5
  try {
    return run({argv + std::min(argc, 1), argv + argc});
  } catch (const fovea::Error& error) {
    return complain(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return complain(Exit::memory,
                    "out of memory; lower --batch-tokens or --beam, or close "
                    "other programs");
  } catch (const std::exception& error) {
    return complain(Exit::unexpected, std::string("unexpected: ") + error.what());
  }
}
