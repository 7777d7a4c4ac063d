#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/edit_distance.h"
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
  for (const CLI::App* app = &command; app; app = app->get_parent())
    for (const CLI::Option* o : app->get_options())
      for (const std::string& name : o->get_lnames()) names.push_back("--" + name);
  return names;
}

std::string with_hint(const std::string& message, const std::string& meant) {
  return meant.empty() ? message : message + "; did you mean '" + meant + "'?";
}

// "unknown option '--bem'; did you mean '--beam'?"
std::string unknown_word(const CLI::App& command, const std::string& typed) {
  const bool option = typed.starts_with("-");
  const std::vector<std::string> names = option ? options_of(command) : commands_of(command);
  const char* what = option          ? "unknown option"
                     : names.empty() ? "unexpected argument"
                                     : "unknown command";
  return with_hint(std::string(what) + " '" + typed + "'",
                   meant_name(typed.substr(0, typed.find('=')), names));
}

// An option of a command that stands before its name, where only options of all commands may:
// "'-m' comes after the command: fovea translate -m ..."; "" where it is none.
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
  return fmt::format("option '{}' comes after the command: {} {} ...", name, after, name);
}

// What a required option or argument is for: "TEXT is required: The sentence to translate".
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

// Too few values for an option, or too many: "--port needs N from 0 to 65535: Port to listen on".
std::string wrong_number(const CLI::App& command, const std::string& said) {
  const std::string name = said.substr(0, said.find(':'));
  const CLI::Option* option = option_named(command, name);
  if (!option) return said;
  if (said.find("At Most") != std::string::npos)
    return name + " is given more than once, but takes one value: " + option->get_description();
  return name + " needs " + option->get_type_name() + ": " + option->get_description();
}

// CLI11's "Could not convert: --beam = many".
std::string wrong_value(const CLI::App& command, const std::string& said) {
  const std::string unread = "Could not convert: ";
  const size_t equals = said.find(" = ");
  if (!said.starts_with(unread) || equals == std::string::npos) return said;
  const std::string name = said.substr(unread.size(), equals - unread.size());
  const CLI::Option* option = option_named(command, name);
  const bool flag = option && option->get_items_expected_max() == 0;
  return name + (flag ? ": takes no value" : ": expected a number") + ", found '" +
         said.substr(equals + 3) + "'";
}

// What CLI11 has to say, in our words: what was found, and what to do.
std::string reworded(const CLI::App& command, const CLI::ParseError& error) {
  const std::string said = error.what();
  const auto with = [&](const char* theirs, const char* between, const char* after) {
    const size_t at = said.find(theirs);
    return at == std::string::npos
               ? said
               : said.substr(0, at) + between + said.substr(at + std::strlen(theirs)) + after;
  };
  if (dynamic_cast<const CLI::RequiredError*>(&error)) return missing_word(command);
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) return wrong_number(command, said);
  if (dynamic_cast<const CLI::ConversionError*>(&error)) return wrong_value(command, said);
  if (dynamic_cast<const CLI::ExcludesError*>(&error))
    return with(" excludes ", " and ", " exclude each other: give only one of them");
  if (dynamic_cast<const CLI::RequiresError*>(&error))
    return with(" requires ", " belongs to ", ": give both");
  return said;
}

[[noreturn]] void complain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  std::string name = "fovea";
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    name += " " + command->get_name();
  }
  // What is missing may be what was mistyped, so that a word nobody knows comes first.
  const bool told = dynamic_cast<const CLI::RequiredError*>(&error) ||
                    dynamic_cast<const CLI::ExtrasError*>(&error);
  const std::vector<std::string> extras = app.remaining(true);
  const bool unknown = told && !extras.empty();
  std::string message = unknown ? misplaced_option(*command, extras.front()) : "";
  if (message.empty())
    message = unknown ? unknown_word(*command, extras.front()) : reworded(*command, error);
  fail(Exit::usage, message, "\nTry '", name, " --help'.");
}

constexpr const char* kNumber = "N";  // what the help calls a number of which no more is said

// Numbers of a kind, "from 1 to 9", in the help and where another is found.
template <typename Number>
CLI::Option* numbers(CLI::Option* option, const std::string& which,
                     const std::function<bool(Number)>& good) {
  if (option->get_type_name() == kNumber) option->type_name(kNumber + (" " + which));
  return option->check([which, good](const std::string& found) -> std::string {
    Number number{};
    if (CLI::detail::lexical_cast(found, number) && good(number)) return "";
    const char* what = std::is_integral_v<Number> ? "a whole number" : "a number";
    return fmt::format("expected {} {}, found '{}'", what, which, found);
  });
}

// CLI11's help, but a default stands in brackets: "N from 1 to 9=4" reads like arithmetic.
class Help : public CLI::Formatter {
  std::string make_footer(const CLI::App* app) const override {
    const std::string text = CLI::Formatter::make_footer(app);
    if (!app->get_parent()) return text;
    return text + "\nAll commands take --threads N, -q and --log-format as well: fovea --help.\n";
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

Option Option::one_by_one() {
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
  const auto exchange = [words](std::string& found) {
    for (const auto& [other, ours] : words)
      if (found == other) found = ours;
    return std::string();
  };
  return Option(option_->transform(CLI::Validator(exchange, "")));
}

Option Option::any_case() {
  const auto lower = [](std::string& found) {
    found = CLI::detail::to_lower(found);
    return std::string();
  };
  return Option(option_->transform(CLI::Validator(lower, "")));
}

Option Option::split_at_commas() { return Option(option_->delimiter(',')); }

Option Option::within(int64_t least, int64_t most) {
  return Option(numbers<int64_t>(option_, fmt::format("from {} to {}", least, most),
                                 [least, most](int64_t n) { return least <= n && n <= most; }));
}

Option Option::within(double least, double most) {
  return Option(numbers<double>(option_, fmt::format("from {} to {}", least, most),
                                [least, most](double x) { return least <= x && x <= most; }));
}

Option Option::positive() {
  return Option(numbers<double>(option_, "above 0", [](double x) { return x > 0; }));
}

Option Option::not_negative() {
  return Option(numbers<double>(option_, "from 0", [](double x) { return x >= 0; }));
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
void Command::runs(const std::function<void()>& action) { app_->callback(action); }

Option Command::option(const char* names, std::string& value, const char* help) {
  return under_heading(app_->add_option(names, value, help));
}

Option Command::option(const char* names, std::vector<std::string>& values, const char* help) {
  return under_heading(app_->add_option(names, values, help));
}

Option Command::option(const char* names, int& value, const char* help) {
  return under_heading(app_->add_option(names, value, help)->type_name(kNumber));
}

Option Command::option(const char* names, int64_t& value, const char* help) {
  return under_heading(app_->add_option(names, value, help)->type_name(kNumber));
}

Option Command::option(const char* names, uint64_t& value, const char* help) {
  return under_heading(app_->add_option(names, value, help)->type_name(kNumber));
}

Option Command::option(const char* names, double& value, const char* help) {
  return under_heading(app_->add_option(names, value, help)->type_name(kNumber));
}

Option Command::option(const char* names, std::optional<float>& value, const char* help) {
  return under_heading(app_->add_option(names, value, help)->type_name(kNumber));
}

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
  app_->formatter(std::make_shared<Help>());  // which its commands inherit
  app_->set_version_flag("--version", "fovea " FOVEA_VERSION);
  app_->footer(footer);
  app_->require_subcommand(0, 1);
  app_->fallthrough();  // inherited too: its options may stand behind the names of commands
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
  std::ranges::reverse(words);  // CLI11 takes them from the back
  try {
    app_->parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    const std::vector<std::string> extras = app_->remaining();
    if (app_->get_subcommands().empty() && !extras.empty() && !extras.front().starts_with("-"))
      fail(Exit::usage, unknown_word(*app_, extras.front()), "\nTry 'fovea --help'.");
    app_->exit(asked);
    return;
  } catch (const CLI::ParseError& error) {
    complain(*app_, error);
  }
  if (app_->get_subcommands().empty()) std::fputs(app_->help().c_str(), stdout);
}

const char* cli11_version() { return CLI11_VERSION; }

}  // namespace fovea
