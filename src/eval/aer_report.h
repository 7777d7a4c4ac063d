#pragma once

#include <string>
#include <vector>

namespace fovea {

struct AerOptions {
  std::string gold;                 // the path of the gold links, in the format named Talp
  std::vector<std::string> inputs;  // paths of files in the format Pharaoh; "-": standard input
  int gold_from = 1;                // the index that `gold` gives to the first word: 0 or 1
  int width = 2;
  bool score_only = false, json = false;
};

// Returns a report with the alignment error rate of each input against the gold links. If the files
// have different numbers of lines or a line is not a list of links, throws ExitCode::data.
std::string evaluate_aer(const AerOptions& options);

}  // namespace fovea
