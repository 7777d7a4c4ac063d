#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace fovea {

// Note [CLI11]: commands declare their options with the classes of this header. Only
// command_line.cpp includes CLI11: compiled in every command, CLI11 took a quarter of the build
// time.

// A reference to an option of a command. Its functions are called in a chain:
// option(…).among({"text", "jsonl"}).with_default().
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option takes(const char* what);             // name of the value in the help: FILE
  Option count(int values);                   // number of values per use
  Option with_default();                      // the help shows the variable's current value
  Option from_environment(const char* name);  // used if the option is not given
  Option required();
  Option hidden();  // omitted from the help: for processes that the program itself starts
  // The option may be given several times and takes all values up to the next option. The help does
  // not show this.
  Option repeated();
  // The option may be given several times, with one value each. Words after the value are
  // arguments.
  Option one_value_each();

  Option among(std::initializer_list<const char*> words);
  Option among(const std::vector<std::string>& words);
  // Replaces the first word of each pair by the second.
  Option synonyms(const std::vector<std::pair<std::string, std::string>>& words);
  Option ignore_case();      // "CUDA" is "cuda"; call it after among()
  Option split_at_commas();  // "a,b" is two values
  Option within(int least, int most) { return within(int64_t{least}, int64_t{most}); }
  Option within(int64_t least, int64_t most);
  Option within(double least, double most);
  Option positive();
  Option not_negative();

  Option needs(Option other);
  Option excludes(Option other);

 private:
  CLI::Option* option_;
};

// A command of the program, or a group of its options under a heading. A copy refers to the same
// command. The program must outlive it.
class Command {
 public:
  explicit Command(CLI::App* app, const char* heading = nullptr) : app_(app), heading_(heading) {}

  Command command(const char* name, const char* help);
  Command group(const char* heading);
  void needs_command();  // requires a subcommand
  void footer(const char* text);
  void runs(const std::function<void()>& action);

  // Names are "-o,--output"; a name without dashes is a positional argument. The variable keeps its
  // value if the option is not given. It must live until the command has run.
  // Values are text, lists of text, numbers or optional numbers.
  template <class Value>
  Option option(const char* names, Value& value, const char* help);
  Option flag(const char* names, bool& value, const char* help);

  // Whether the command line or the environment sets an option of this command or of its parents.
  bool given(const char* option) const;

 protected:
  CLI::App* app_;

 private:
  Option under_heading(CLI::Option* option);

  const char* heading_;  // of the options in the help; null if this is not a group
};

// The command-line parser of the program: the parent of all commands.
class Program : public Command {
 public:
  Program(const char* about, const char* footer);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Sets a function that run() calls when all options are parsed, before the command runs.
  void prepare(const std::function<void()>& action);

  // Runs the command that the words name, or prints the requested help or version. Without words,
  // prints the help. Throws ExitCode::usage for invalid words, with a suggestion if there is one.
  void run(std::vector<std::string> words);

 private:
  std::unique_ptr<CLI::App> owned_;
};

const char* cli11_version();

}  // namespace fovea
