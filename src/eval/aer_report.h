#pragma once

#include <string>
#include <vector>

namespace fovea {

struct AerOptions {
  std::string gold;                 // Talp
  std::vector<std::string> inputs;  // Pharaoh; "-" for standard input
  int gold_from = 1;                // the number of the first word in `gold`
  int width = 2;
  bool score_only = false, json = false;
};

// Returns the report of the alignment error rate of each input against the gold links. Throws
// ExitCode::data if the files have different lengths or other content.
std::string evaluate_aer(const AerOptions& options);

}  // namespace fovea
