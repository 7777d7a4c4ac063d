#pragma once

#include <string>
#include <vector>

namespace fovea {

struct AerOptions {
  std::string gold;                 // the path of the gold links, in the format Talp
  std::vector<std::string> inputs;  // paths, in the format Pharaoh; "-": standard input
  int gold_from = 1;                // the number of the first word of a sentence in `gold`
  int width = 2;
  bool score_only = false, json = false;
};

// Returns a report with the alignment error rate of each input against the gold links. Throws
// ExitCode::data if the files have different numbers of lines or lines that are not links.
std::string evaluate_aer(const AerOptions& options);

}  // namespace fovea
