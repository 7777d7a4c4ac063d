#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fovea {

// A program that the pool runs at the same time as others. The output is appended to the file
// `log`.
struct ProcessJob {
  std::string name;
  std::vector<std::string> words;  // arguments, the program's name first
  std::string log;
};

// The options of a process pool.
struct AtOnce {
  int most = 1;        // maximum number of programs at a time
  int64_t before = 0;  // jobs finished by earlier runs, included in the counts
  std::function<void(const ProcessJob& job, int code)> ended;  // `code` is the exit code of the job
};

// Runs this program again for each job. Without OMP_NUM_THREADS it divides the cores among the
// jobs. Logs the end of each job as "3 of 15 done: local-p, 42s". A terminal also shows the names
// of the running jobs. After a stop request for this program, or if `ended` throws, it sends
// SIGTERM to the jobs and waits for them.
void run_at_once(const std::vector<ProcessJob>& jobs, const AtOnce& how);

// The arguments of this program, its own name first.
std::vector<std::string> words_of_this_program();

// A job calls this at its start. It then receives SIGTERM when the program that started it ends.
void stop_with_parent();

}  // namespace fovea
