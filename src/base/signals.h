#pragma once

namespace fovea {

// Installs signal handlers. The first SIGINT, SIGTERM or SIGHUP then only sets a flag, so that the
// program can finish its step and save. A second one ends the program immediately with exit code
// 128 + signal number. SIGPIPE is ignored: writing to a closed pipe is an ordinary error. Call
// once, from cli/.
void watch_signals();

bool stop_requested();

// The exit code for a stop request: 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP; 0 if no
// signal arrived.
int stop_exit_code();

// Sets the flag as this signal would. If `signal` is 0, clears the flag. For tests and for
// embedding.
void request_stop(int signal);

}  // namespace fovea
