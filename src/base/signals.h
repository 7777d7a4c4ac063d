#pragma once

namespace fovea {

// From now on the first SIGINT, SIGTERM or SIGHUP only sets a flag, so that the program can
// finish its step and save; a second one ends it at once with 128 + the signal's number.
// SIGPIPE is ignored: writing to a closed pipe is an ordinary error. Call once, from cli/.
void watch_signals();

bool stop_requested();

// 130 after SIGINT, 143 after SIGTERM, 129 after SIGHUP, 0 when none came.
int stop_exit_code();

// Sets the flag as a signal would, or clears it when 0: for tests and for embedding.
void request_stop(int signal);

}  // namespace fovea
