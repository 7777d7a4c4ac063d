#include "cli/commands.h"

#include <cstdio>
#include <exception>
#include <new>

#include "base/check.h"
#include "base/log_wording.h"
#include "base/signals.h"
#include "cli/command_line.h"
#include "cli/flag_names.h"
#include "cli/model_options.h"

namespace fovea {
namespace {

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
  std::fprintf(stderr, "fovea: %s\n", with_flags(message).c_str());
  return static_cast<int>(code);
}

}  // namespace

int exit_code_of(const std::function<int()>& action) {
  try {
    return action();
  } catch (const Error& error) {
    return report_error(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return report_error(ExitCode::memory,
                        "out of memory; lower `batch_tokens` or `beam`, or close other programs");
  } catch (const std::exception& error) {
    return report_error(ExitCode::unexpected, std::string("unexpected error: ") + error.what());
  }
}

int run_program(const std::vector<std::string>& words) {
  set_log_wording(with_flags);
  return exit_code_of([&] {
    Program program(kAbout, kFooter);
    add_global_options(program);
    for (const auto add :
         {add_translate, add_show, add_score, add_align, add_classify, add_evaluate, add_vocab,
          add_embed, add_neighbours, add_train, add_import, add_average, add_compare, add_serve,
          add_bench, add_inspect, add_doctor})
      add(program);
    program.run(words);
    return stop_exit_code();
  });
}

}  // namespace fovea
