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

// Note [CLI11]: what commands say of their options is said here, and options.cpp tells CLI11. No
// other file knows it: compiled in every command, it took a quarter of the build's time.

// An option of a command. What is to be said of it is said in a chain:
// option(…).among({"text", "jsonl"}).with_default().
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option takes(const char* what);             // the value's name in the help: FILE
  Option count(int values);                   // so many values at a time
  Option with_default();                      // the help tells the value that the variable has now
  Option from_environment(const char* name);  // where the option is not given
  Option required();
  Option hidden();  // in the help: for programs that the program itself starts
  // May be given again, and takes all values up to the next option, which the help does not show.
  Option repeated();
  // May be given again, and takes one value at a time: what stands behind it is something else.
  Option one_by_one();

  Option among(std::initializer_list<const char*> words);
  Option among(const std::vector<std::string>& words);
  // Read as if the second of each pair were given.
  Option synonyms(const std::vector<std::pair<std::string, std::string>>& words);
  Option any_case();         // "CUDA" is "cuda"; said after what the words may be
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

// A command of the program, or a group of its options under a heading. A copy is the same command.
class Command {
 public:
  explicit Command(CLI::App* app, const char* heading = nullptr) : app_(app), heading_(heading) {}

  Command command(const char* name, const char* help);
  Command group(const char* heading);
  void needs_command();  // one of its own
  void footer(const char* text);
  void runs(const std::function<void()>& action);

  // Names are "-o,--output"; without dashes the option is an argument. The variable keeps its value
  // where nothing is given, and must live until the command has run.
  Option option(const char* names, std::string& value, const char* help);
  Option option(const char* names, std::vector<std::string>& values, const char* help);
  Option option(const char* names, int& value, const char* help);
  Option option(const char* names, int64_t& value, const char* help);
  Option option(const char* names, uint64_t& value, const char* help);
  Option option(const char* names, double& value, const char* help);
  Option option(const char* names, std::optional<float>& value, const char* help);
  Option flag(const char* names, bool& value, const char* help);

  // Whether the user or the environment gives an option of this command or of those above it.
  bool given(const char* option) const;

 protected:
  CLI::App* app_;

 private:
  Option under_heading(CLI::Option* option);

  const char* heading_;  // of its options in the help, where it is a group
};

// The whole program: a command of which the others are part.
class Program : public Command {
 public:
  Program(const char* about, const char* footer);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Done when all options are read, before the command runs.
  void prepare(const std::function<void()>& action);

  // Runs the command that the words name, or prints the help or version that they ask for; no words
  // are a call for help. Exit::usage where they make no sense, with what was probably meant.
  void run(std::vector<std::string> words);

 private:
  std::unique_ptr<CLI::App> owned_;
};

const char* cli11_version();

}  // namespace fovea
