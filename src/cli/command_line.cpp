#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/check.h"
#include "base/edit_distance.h"
#include "cli/did_you_mean.h"

namespace fovea {
namespace {

// ---- errors of a command line ----

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands(nullptr))
    if (!sub->get_name().empty()) names.push_back(sub->get_name());
  return names;
}

// Returns the names of the options of the command and of its parents.
std::vector<std::string> options_of(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::App* app = &command; app; app = app->get_parent())
    for (const CLI::Option* o : app->get_options())
      for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string with_hint(const std::string& message, const std::string& suggestion) {
  return suggestion.empty() ? message : message + "; did you mean '" + suggestion + "'?";
}

// Returns the error for an unknown word: "unknown option '--bem'; did you mean '--beam'?"
std::string unknown_word(const CLI::App& command, const std::string& typed) {
  const bool option = typed.starts_with("-");
  const std::vector<std::string> names = option ? options_of(command) : commands_of(command);
  const char* kind = option          ? "unknown option"
                     : names.empty() ? "unexpected argument"
                                     : "unknown command";
  return with_hint(std::string(kind) + " '" + typed + "'",
                   suggested_name(typed.substr(0, typed.find('=')), names));
}

// Returns the error for an option of a command that the user gave before the name of the command.
// Only global options are allowed there: "option '-m' must follow the command: fovea translate -m
// ...". Returns "" for any other word.
std::string misplaced_option(const CLI::App& command, const std::string& typed) {
  const std::string name = typed.substr(0, typed.find('='));
  const auto belongs = [&](const CLI::App* app) {
    return name.starts_with("-") && app->get_option_no_throw(name) != nullptr;
  };
  std::string after = command.get_name();
  for (const CLI::App* app = command.get_parent(); app; app = app->get_parent())
    after = app->get_name() + " " + after;
  const auto below = command.get_subcommands(nullptr);
  if (std::ranges::any_of(below, belongs))
    after += " COMMAND";
  else if (!belongs(&command))
    return "";
  return fmt::format("option '{}' must follow the command: {} {} ...", name, after, name);
}

// Returns the error for a missing option or argument: "TEXT is required: The sentence to
// translate".
std::string missing_word(const CLI::App& command) {
  for (const CLI::Option* o : command.get_options()) {
    if (!o->get_required() || o->count() > 0) continue;
    const bool named = !o->get_lnames().empty();
    const std::string name = named ? "--" + o->get_lnames().front() : o->get_type_name();
    return name + " is required: " + o->get_description();
  }
  return fmt::format("a command is missing; give one of: {}",
                     fmt::join(commands_of(command), ", "));
}

const CLI::Option* option_named(const CLI::App& command, const std::string& name) {
  for (const CLI::App* app = &command; app; app = app->get_parent())
    if (const CLI::Option* found = app->get_option_no_throw(name)) return found;
  return nullptr;
}

// Returns the error for too few or too many values: "--port needs N from 0 to 65535: Port to listen
// on".
std::string wrong_count(const CLI::App& command, const std::string& message) {
  const std::string name = message.substr(0, message.find(':'));
  const CLI::Option* option = option_named(command, name);
  if (!option) return message;
  if (message.find("At Most") != std::string::npos)
    return name + " is given more than once, but accepts one value: " + option->get_description();
  return name + " needs " + option->get_type_name() + ": " + option->get_description();
}

// Returns the error for a wrong value, from CLI11's message "Could not convert: --beam = many".
std::string wrong_value(const CLI::App& command, const std::string& message) {
  const std::string beginning = "Could not convert: ";
  const size_t equals = message.find(" = ");
  if (!message.starts_with(beginning) || equals == std::string::npos) return message;
  const std::string name = message.substr(beginning.size(), equals - beginning.size());
  const CLI::Option* option = option_named(command, name);
  const bool flag = option && option->get_items_expected_max() == 0;
  return name + (flag ? ": expected no value" : ": expected a number") + ", found '" +
         message.substr(equals + 3) + "'";
}

// Returns our message for an error of CLI11, with the value found and the remedy.
std::string reworded(const CLI::App& command, const CLI::ParseError& error) {
  const std::string message = error.what();
  const auto with = [&](const char* theirs, const char* between, const char* after) {
    const size_t at = message.find(theirs);
    return at == std::string::npos
               ? message
               : message.substr(0, at) + between + message.substr(at + std::strlen(theirs)) + after;
  };
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return missing_word(command);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return wrong_count(command, message);
  if (dynamic_cast<const CLI::ConversionError*>(&error)) return wrong_value(command, message);
  if (dynamic_cast<const CLI::ExcludesError*>(&error))
    return with(" excludes ", " and ", " exclude each other; give only one of them");
  if (dynamic_cast<const CLI::RequiresError*>(&error))
    return with(" requires ", " requires ", "; give both");
  return message;
}

// Returns the message about an invalid value. If the value comes from an environment variable, the
// message names the variable instead of the option.
std::string with_variable(const CLI::App& command, const std::string& message,
                          const std::vector<std::string>& words) {
  const size_t colon = message.find(':');
  const CLI::Option* option = option_named(command, message.substr(0, colon));
  if (colon == std::string::npos || !option || option->get_envname().empty()) return message;
  const auto begins = [](const std::string& word, const std::string& name) {
    return word == name || word.starts_with(name + (name.starts_with("--") ? "=" : ""));
  };
  for (const std::string& word : words) {
    for (const std::string& name : option->get_lnames())
      if (begins(word, "--" + name)) return message;
    for (const std::string& name : option->get_snames())
      if (begins(word, "-" + name)) return message;
  }
  return "$" + option->get_envname() + message.substr(colon);
}

// Throws the error of an option whose environment variable has an invalid value. CLI11 2.4 and
// later ignore such a variable.
void check_variables(CLI::App* command) {
  for (; command; command = command->get_parent())
    for (CLI::Option* option : command->get_options()) {
      const char* value = std::getenv(option->get_envname().c_str());
      if (option->count() > 0 || !value || !*value) continue;
      option->add_result(value);
      option->run_callback();
    }
}

[[noreturn]] void fail_usage(const CLI::App& app, const CLI::ParseError& error,
                             const std::vector<std::string>& words) {
  const CLI::App* command = &app;
  std::string name = "fovea";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  // A required word may be missing because it was mistyped, so an unknown word is reported first.
  const bool incomplete = dynamic_cast<const CLI::RequiredError*>(&error) ||
                          dynamic_cast<const CLI::ExtrasError*>(&error);
  const std::vector<std::string> extras = app.remaining(true);
  const bool unknown = incomplete && !extras.empty();
  std::string message = unknown ? misplaced_option(*command, extras.front()) : "";
  if (message.empty())
    message = unknown ? unknown_word(*command, extras.front())
                      : with_variable(*command, reworded(*command, error), words);
  fail(ExitCode::usage, message, "\nTry '", name, " --help'.");
}

constexpr const char* kNumber = "N";  // the value in the help, if a number has no range

// Restricts the values of an option to numbers for which valid() holds. The help and the errors
// show the range, for example "from 1 to 9".
template <typename Number>
CLI::Option* restrict_number(CLI::Option* option, const std::string& range,
                             const std::function<bool(Number)>& valid) {
  if (option->get_type_name() == kNumber) option->type_name(kNumber + (" " + range));
  return option->check([range, valid](const std::string& found) -> std::string {
    Number number{};
    if (CLI::detail::lexical_cast(found, number) && valid(number)) return "";
    const char* type = std::is_integral_v<Number> ? "a whole number" : "a number";
    return fmt::format("expected {} {}, found '{}'", type, range, found);
  });
}

// A formatter of the help that shows defaults in brackets. CLI11's own form, "N from 1 to 9=4",
// looks like arithmetic.
class Help : public CLI::Formatter {
  std::string make_footer(const CLI::App* app) const override {
    const std::string text = CLI::Formatter::make_footer(app);
    if (!app->get_parent()) return text;
    return text +
           "\nAll commands also accept --threads N, -q and --log-format; see 'fovea --help'.\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    std::string text = CLI::Formatter::make_option_opts(option);
    const std::string equals = "=" + option->get_default_str();
    if (const size_t at = text.find(equals); equals.size() > 1 && at != std::string::npos)
      text.replace(at, equals.size(), " [" + equals.substr(1) + "]");
    return text;
  }
};

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

Option Option::one_value_each() {
  repeated();
  return Option(option_->allow_extra_args(false));
}

Option Option::among(std::initializer_list<const char*> words) {
  return among(std::vector<std::string>(words.begin(), words.end()));
}

Option Option::among(const std::vector<std::string>& words) {
  if (option_->get_type_name() == "TEXT")
    option_->type_name(fmt::format("{{{}}}", fmt::join(words, ",")));
  return Option(option_->check([words](const std::string& found) -> std::string {
    if (std::ranges::count(words, found)) return "";
    return with_hint(fmt::format("expected one of {}, found '{}'", fmt::join(words, ", "), found),
                     nearest_name(found, words));
  }));
}

Option Option::synonyms(const std::vector<std::pair<std::string, std::string>>& words) {
  const auto replace = [words](std::string& found) {
    for (const auto& [other, ours] : words)
      if (found == other) found = ours;
    return std::string();
  };
  return Option(option_->transform(CLI::Validator(replace, "")));
}

Option Option::ignore_case() {
  const auto lower = [](std::string& found) {
    found = CLI::detail::to_lower(found);
    return std::string();
  };
  return Option(option_->transform(CLI::Validator(lower, "")));
}

Option Option::split_at_commas() { return Option(option_->delimiter(',')); }

Option Option::within(int64_t least, int64_t most) {
  return Option(
      restrict_number<int64_t>(option_, fmt::format("from {} to {}", least, most),
                               [least, most](int64_t n) { return least <= n && n <= most; }));
}

Option Option::within(double least, double most) {
  return Option(
      restrict_number<double>(option_, fmt::format("from {} to {}", least, most),
                              [least, most](double x) { return least <= x && x <= most; }));
}

Option Option::positive() {
  return Option(restrict_number<double>(option_, "above 0", [](double x) { return x > 0; }));
}

Option Option::not_negative() {
  return Option(restrict_number<double>(option_, "from 0", [](double x) { return x >= 0; }));
}

Option Option::needs(Option other) { return Option(option_->needs(other.option_)); }
Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }

// ---- commands ----

Command Command::command(const char* name, const char* help) {
  return Command(app_->add_subcommand(name, help));
}

Command Command::group(const char* heading) { return Command(app_, heading); }

Option Command::under_heading(CLI::Option* option) {
  return Option(heading_ ? option->group(heading_) : option);
}

void Command::needs_command() { app_->require_subcommand(1); }
void Command::footer(const char* text) { app_->footer(text); }
void Command::runs(const std::function<void()>& action) {
  app_->callback([app = app_, action] {
    check_variables(app);
    action();
  });
}

template <class Value>
Option Command::option(const char* names, Value& value, const char* help) {
  CLI::Option* option = app_->add_option(names, value, help);
  constexpr bool text =
      std::is_same_v<Value, std::string> || std::is_same_v<Value, std::vector<std::string>>;
  return under_heading(text ? option : option->type_name(kNumber));
}

template Option Command::option(const char*, std::string&, const char*);
template Option Command::option(const char*, std::vector<std::string>&, const char*);
template Option Command::option(const char*, int&, const char*);
template Option Command::option(const char*, int64_t&, const char*);
template Option Command::option(const char*, uint64_t&, const char*);
template Option Command::option(const char*, double&, const char*);
template Option Command::option(const char*, std::optional<float>&, const char*);
template Option Command::option(const char*, std::optional<double>&, const char*);
template Option Command::option(const char*, std::optional<int64_t>&, const char*);

Option Command::flag(const char* names, bool& value, const char* help) {
  return under_heading(app_->add_flag(names, value, help));
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
  app_->formatter(std::make_shared<Help>());  // inherited by the commands
  app_->set_version_flag("-V,--version", "fovea " FOVEA_VERSION);
  app_->footer(footer);
  app_->require_subcommand(0, 1);
  app_->fallthrough();  // inherited: global options may follow the name of a command
}

Program::~Program() = default;

void Program::prepare(const std::function<void()>& action) {
  app_->parse_complete_callback(action);
}

void Program::run(std::vector<std::string> words) {
  if (!words.empty() && words.front() == "help") {  // "help COMMAND" is "COMMAND --help"
    words.erase(words.begin());
    words.push_back("--help");
  }
  if (words == std::vector<std::string>{"version"}) words = {"--version"};
  const std::vector<std::string> given = words;
  std::ranges::reverse(words);  // CLI11 reads them from the back
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& request) {  // --help, --version
    const std::vector<std::string> extras = app_->remaining();
    if (app_->get_subcommands().empty() && !extras.empty() && !extras.front().starts_with("-"))
      fail(ExitCode::usage, unknown_word(*app_, extras.front()), "\nTry 'fovea --help'.");
    app_->exit(request);
    return;
  } catch (const CLI::ParseError& error) {
    fail_usage(*app_, error, given);
  }
  if (app_->get_subcommands().empty()) std::fputs(app_->help().c_str(), stdout);
}

const char* cli11_version() { return CLI11_VERSION; }

}  // namespace fovea
