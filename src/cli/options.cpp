#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>

#include "base/check.h"
#include "cli/suggestion.h"

namespace fovea {
namespace {

// ---- what is wrong with a command line ----

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
  const std::string near = nearest_name(typed.substr(0, typed.find('=')), names);
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
  const std::string near = nearest_name(said.substr(colon + 2, from - colon - 2), names);
  return near.empty() ? said : said + "; did you mean '" + near + "'?";
}

[[noreturn]] void complain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "fovea", message = error.what();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  // What is missing may be what was mistyped, so that a word nobody knows comes first.
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error);
  const bool told = missing || dynamic_cast<const CLI::ExtrasError*>(&error);
  const std::vector<std::string> extras = app.remaining(true);
  if (missing) message = missing_word(*command, message);
  if (told && !extras.empty())
    message = unknown_word(*command, extras.front());
  else
    message = wrong_value(message);
  fail(Exit::usage, message, "\nTry '", name, " --help'.");
}

}  // namespace

// ---- options ----

Option Option::takes(const char* what) { return Option(option_->type_name(what)); }
Option Option::count(int values) { return Option(option_->expected(values)); }
Option Option::with_default() { return Option(option_->capture_default_str()); }
Option Option::from_environment(const char* name) { return Option(option_->envname(name)); }
Option Option::required() { return Option(option_->required()); }

Option Option::hidden() { return Option(option_->group("")); }

Option Option::repeated() {
  return Option(option_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll));
}

Option Option::one_by_one() {
  repeated();
  return Option(option_->allow_extra_args(false));
}

Option Option::among(std::initializer_list<const char*> words) {
  return among(std::vector<std::string>(words.begin(), words.end()));
}

Option Option::among(const std::vector<std::string>& words) {
  return Option(option_->check(CLI::IsMember(words)));
}

Option Option::synonyms(const std::vector<std::pair<std::string, std::string>>& words) {
  return Option(option_->transform(CLI::Transformer(words)));
}

Option Option::within(int64_t least, int64_t most) {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::within(double least, double most) {
  return Option(option_->check(CLI::Range(least, most)));
}

Option Option::positive() { return Option(option_->check(CLI::PositiveNumber)); }
Option Option::not_negative() { return Option(option_->check(CLI::NonNegativeNumber)); }
Option Option::needs(Option other) { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }

// ---- commands ----

Command Command::command(const char* name, const char* help) {
  return Command(app_->add_subcommand(name, help));
}

Command Command::group(const char* heading) { return Command(app_->add_option_group(heading)); }

void Command::needs_command() { app_->require_subcommand(1); }
void Command::footer(const char* text) { app_->footer(text); }
void Command::runs(const std::function<void()>& action) { app_->callback(action); }

Option Command::option(const char* names, std::string& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const char* names, std::vector<std::string>& values, const char* help) {
  return Option(app_->add_option(names, values, help));
}

Option Command::option(const char* names, int& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const char* names, int64_t& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const char* names, uint64_t& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const char* names, double& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::option(const char* names, std::optional<float>& value, const char* help) {
  return Option(app_->add_option(names, value, help));
}

Option Command::flag(const char* names, bool& value, const char* help) {
  return Option(app_->add_flag(names, value, help));
}

bool Command::given(const char* option) const {
  for (const CLI::App* app = app_; app; app = app->get_parent())
    if (const CLI::Option* found = app->get_option_no_throw(option); found && found->count() > 0)
      return true;
  return false;
}

// ---- the program ----

Program::Program(const char* about, const char* footer)
    : Command(nullptr), owned_(std::make_unique<CLI::App>(about, "fovea")) {
  app_ = owned_.get();
  app_->set_version_flag("--version", "fovea " FOVEA_VERSION);
  app_->footer(footer);
  app_->require_subcommand(0, 1);
  app_->fallthrough();  // which its commands inherit: its options may stand behind their names
}

Program::~Program() = default;

void Program::prepare(const std::function<void()>& action) {
  app_->parse_complete_callback(action);
}

void Program::run(std::vector<std::string> words) {
  std::ranges::reverse(words);  // CLI11 takes them from the back
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    app_->exit(asked);
    return;
  } catch (const CLI::ParseError& error) {
    complain(*app_, error);
  }
  if (app_->get_subcommands().empty()) std::fputs(app_->help().c_str(), stdout);
}

const char* cli11_version() { return CLI11_VERSION; }

}  // namespace fovea
