#pragma once

#include <functional>
#include <string>
#include <vector>

namespace fovea {

// The options of `fovea compare`.
struct CompareSetup {
  std::string file, directory, data, precision, device = "cpu";
  std::vector<std::string> assignments, only;
  std::string part;  // the only variant that this process trains; its parent makes the report
  // Returns the arguments of a process that trains one variant. Required if at_once is above 1.
  std::function<std::vector<std::string>(const std::string& variant)> part_words;
  int at_once = 1;
  bool dry_run = false, threads_given = false;
};

// Trains and measures the variants of a comparison file, and writes the report after each variant.
// Resumes an earlier run. Throws ExitCode::diverged at the end if a model diverged.
void run_comparison(CompareSetup setup);

}  // namespace fovea
