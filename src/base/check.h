#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace fovea {

// The exit codes of the program (docs/formats.md).
enum class ExitCode {
  done = 0,
  unexpected = 1,
  usage = 2,
  data = 3,
  model = 4,
  files = 5,
  memory = 6,
  diverged = 7,
};

// An error of the user, the data or the machine. The message gives the location, the value found,
// the value expected and the remedy. Programming errors are asserts. Only cli/ turns an Error into
// an exit code.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

// Throws an Error whose message joins the parts: fail(ExitCode::data, path, ":", line, ": the two
// files differ in length").
template <class... Parts>
[[noreturn]] void fail(ExitCode code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw Error(code, message.str());
}

template <class... Parts>
void check(bool ok, ExitCode code, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(code, parts...);
}

}  // namespace fovea
