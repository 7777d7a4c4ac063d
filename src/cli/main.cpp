#include <CLI/CLI.hpp>
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
#include "cli/score.h"
#include "cli/serve.h"
#include "cli/session.h"
#include "cli/show.h"
#include "cli/suggestion.h"
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

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    if (!sub->get_name().empty()) names.push_back(sub->get_name());
  return names;
}

// The options that the command and the program know.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app; app = app->get_parent()) {
    for (const CLI::Option* o : app->get_options())
      for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
    for (const CLI::App* group : app->get_subcommands(nullptr))
      if (group->get_name().empty())
        for (const CLI::Option* o : group->get_options())
          for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// "unknown option '--bem'; did you mean '--beam'?"
std::string unknown_word(const CLI::App& command, const std::string& typed) {
  const bool option = typed.starts_with("-");
  const std::vector<std::string> names = option ? options_of(command) : commands_of(command);
  const std::string near = fovea::nearest_name(typed.substr(0, typed.find('=')), names);
  const char* what = option          ? "unknown option"
                     : names.empty() ? "unexpected argument"
                                     : "unknown command";
  const std::string message = std::string(what) + " '" + typed + "'";
  return near.empty() ? message : message + "; did you mean '" + near + "'?";
}

// What a required option or argument is for: "TEXT is required: The sentence to translate".
std::string missing_word(const CLI::App& command, const std::string& said) {
  for (const CLI::Option* o : command.get_options()) {
    if (!o->get_required() || o->count() > 0) continue;
    const bool named = !o->get_lnames().empty();
    const std::string name = named ? "--" + o->get_lnames().front() : o->get_type_name();
    return name + " is required: " + o->get_description();
  }
  return said;
}

// "--format: xml not in {text,jsonl}; did you mean …?", and numbers that are none.
std::string wrong_value(const std::string& said) {
  const std::string unread = "Could not convert: ", outside = " not in {";
  const size_t equals = said.find(" = ");
  if (said.starts_with(unread) && equals != std::string::npos)
    return said.substr(unread.size(), equals - unread.size()) + ": expected a number, found '" +
           said.substr(equals + 3) + "'";
  const size_t colon = said.find(": "), from = said.find(outside);
  if (colon == std::string::npos || from == std::string::npos || from < colon + 2) return said;
  const size_t first = from + outside.size();
  const std::vector<std::string> names =
      CLI::detail::split(said.substr(first, said.find('}', first) - first), ',');
  const std::string near = fovea::nearest_name(said.substr(colon + 2, from - colon - 2), names);
  return near.empty() ? said : said + "; did you mean '" + near + "'?";
}

int complain_usage(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "fovea", message = error.what();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  // What is missing may be what was mistyped, so that a word nobody knows comes first.
  const bool told = dynamic_cast<const CLI::ExtrasError*>(&error) ||
                    dynamic_cast<const CLI::RequiredError*>(&error);
  const std::vector<std::string> extras = app.remaining(true);
  if (dynamic_cast<const CLI::RequiredError*>(&error)) message = missing_word(*command, message);
  if (told && !extras.empty())
    message = unknown_word(*command, extras.front());
  else
    message = wrong_value(message);
  return complain(Exit::usage, message + "\nTry '" + name + " --help'.");
}

void add_commands(CLI::App& app) {
  fovea::add_translate(app);
  fovea::add_show(app);
  fovea::add_score(app);
  fovea::add_align(app);
  fovea::add_classify(app);
  fovea::add_evaluate(app);
  fovea::add_vocab(app);
  fovea::add_embed(app);
  fovea::add_neighbours(app);
  fovea::add_train(app);
  fovea::add_average(app);
  fovea::add_compare(app);
  fovea::add_serve(app);
  fovea::add_bench(app);
  fovea::add_inspect(app);
  fovea::add_doctor(app);
}

int run(int argc, char** argv) {
  CLI::App app(kAbout, "fovea");
  app.set_version_flag("--version", "fovea " FOVEA_VERSION);
  app.footer(kFooter);
  app.require_subcommand(0, 1);
  app.fallthrough();
  fovea::add_session(app);
  add_commands(app);
  for (CLI::App* command : app.get_subcommands(nullptr)) command->fallthrough();
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return complain_usage(app, error);
  }
  if (app.get_subcommands().empty()) std::fputs(app.help().c_str(), stdout);
  return fovea::stop_exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an ordinary error: exit code 5
  try {
    return run(argc, argv);
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
