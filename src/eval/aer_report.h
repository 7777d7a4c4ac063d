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

// The alignment error rate of each input against the gold links, ready to be printed. Exit::data
// where the files differ in length or hold something else.
std::string evaluate_aer(const AerOptions& options);

}  // namespace fovea
