#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fovea {

// A program to run, and the file `log` to which its output is appended.
struct ProcessJob {
  std::string name;
  std::vector<std::string> words;  // arguments, beginning with the program's name
  std::string log;
};

// The options of a process pool.
struct AtOnce {
  int most = 1;        // maximum number of programs at a time
  int64_t before = 0;  // jobs finished by earlier runs, included in the counts
  std::function<void(const ProcessJob& job, int code)> ended;  // `code`: exit code of the job
};

// Runs this program again for each job, several at a time. If OMP_NUM_THREADS is not set, divides
// the cores among the jobs. Logs the end of each job as "3 of 15 done: local-p, 42s". On a terminal
// it also shows the names of the running jobs. If this program receives a stop request or `ended`
// throws, it sends SIGTERM to the jobs and waits for them.
void run_at_once(const std::vector<ProcessJob>& jobs, const AtOnce& how);

// The arguments of this program, beginning with its own name.
std::vector<std::string> words_of_this_program();

// A job calls this at its start. When the program that started the job ends, the system then sends
// SIGTERM to the job.
void stop_with_parent();

}  // namespace fovea
