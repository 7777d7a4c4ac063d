#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fovea {

// Everything that `fovea compare` needs to compare models.
struct CompareSetup {
  std::string file, directory, data, precision, device = "cpu";
  std::vector<std::string> assignments, only;
  std::string part;  // the one variant that this process trains; the parent process does the rest
  // The arguments of a process that trains one variant. Required if at_once is above 1.
  std::function<std::vector<std::string>(const std::string& variant)> part_words;
  int at_once = 1;
  bool dry_run = false, threads_given = false;
};

// Trains the variants of a comparison file and measures them, and writes the report after each.
// Resumes what an earlier call has left. Throws Exit::diverged at the end if a model diverged.
void run_comparison(CompareSetup setup);

}  // namespace fovea
