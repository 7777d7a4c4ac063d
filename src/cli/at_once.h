#pragma once

#include <string>
#include <vector>

namespace fovea {

// A program to be run beside others. What it prints goes to the end of its log.
struct Job {
  std::string name;
  std::vector<std::string> words;  // as this program's own: see words_of_this_program()
  std::string log;
};

// Runs this program again for each job, at most `most` at a time; without OMP_NUM_THREADS the cores
// are shared among them. Tells of each that ends. Once this program is asked to stop, so are they,
// and all of them are waited for.
void run_at_once(const std::vector<Job>& jobs, int most);

// The words that this program was called with, its own name first.
std::vector<std::string> words_of_this_program();

// To be called by a job: it is asked to stop where the program that started it is gone.
void stop_with_parent();

}  // namespace fovea
