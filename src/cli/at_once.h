#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace fovea {

// A program to be run beside others. What it prints goes to the end of its log.
struct Job {
  std::string name;
  std::vector<std::string> words;  // as this program's own: see words_of_this_program()
  std::string log;
};

struct AtOnce {
  int most = 1;                                         // programs at a time
  int64_t before = 0;                                   // jobs of earlier programs, in the counts
  std::function<void(const Job& job, int code)> ended;  // with which exit code
};

// Runs this program again for each job; without OMP_NUM_THREADS the cores are shared among them.
// Tells of each that ends, "3 of 15 done: local-p, 42s", and on a terminal which ones are running.
// Once this program is asked to stop, or `ended` throws, they are asked to stop and waited for.
void run_at_once(const std::vector<Job>& jobs, const AtOnce& how);

// The words that this program was called with, its own name first.
std::vector<std::string> words_of_this_program();

// To be called by a job: it is asked to stop where the program that started it is gone.
void stop_with_parent();

}  // namespace fovea
