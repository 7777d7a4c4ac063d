#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "cli/commands.h"

namespace {

// Opens /dev/null for each standard descriptor that is closed. Otherwise the next opened file would
// get its number, and the program would write output into that file. The access mode is the
// opposite of the usual one, so that reading input and writing results still fail. Log lines are
// discarded.
void reserve_standard_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_WRONLY);
}

}  // namespace

int main(int argc, char** argv) {
  reserve_standard_descriptors();
  std::signal(SIGPIPE, SIG_IGN);  // writing to a closed pipe is an error: exit code 5
  return fovea::run_program({argv + std::min(argc, 1), argv + argc});
}
