#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

namespace fovea {

// What the program's exit code tells a script (docs/formats.md).
enum class Exit {
  done = 0,
  unexpected = 1,
  usage = 2,
  data = 3,
  model = 4,
  files = 5,
  memory = 6,
  diverged = 7,
};

// What the user, the data or the machine got wrong: where, what was found, what was expected,
// what to do. Programming errors are asserts. Only cli/ turns an Error into an exit code.
class Error : public std::runtime_error {
 public:
  Error(Exit code, const std::string& message) : std::runtime_error(message), code_(code) {}
  Exit code() const { return code_; }

 private:
  Exit code_;
};

// fail(Exit::data, path, ":", line, ": the two files differ in length")
template <class... Parts>
[[noreturn]] void fail(Exit code, const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw Error(code, message.str());
}

template <class... Parts>
void check(bool ok, Exit code, const Parts&... parts) {
  if (!ok) [[unlikely]]
    fail(code, parts...);
}

}  // namespace fovea
