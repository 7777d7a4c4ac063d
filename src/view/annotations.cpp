#include "view/annotations.h"

#include <algorithm>

#include "base/check.h"

namespace fovea {

bool MatrixAnnotations::bars(size_t i, size_t j) const {
  const float middle = static_cast<float>(j);
  if (i < window.size() && (middle < window[i].low || middle > window[i].high)) return true;
  return i < frontier.size() && middle < frontier[i];
}

void check_marks(const MatrixAnnotations& marks, size_t target, size_t source) {
  const auto fits = [&](const char* what, size_t count) {
    check(count == 0 || count == target, ExitCode::data, "attention of ", target,
          " target words has ", count, " entries of ", what);
  };
  fits("p_t", marks.position.size());
  fits("windows", marks.window.size());
  fits("deviations", marks.deviation.size());
  fits("kappa", marks.kappa.size());
  fits("choices", marks.chosen.size());
  fits("the frontier", marks.frontier.size());
  for (const auto& words : marks.chosen)
    for (const size_t j : words)
      check(j < source, ExitCode::data, "a choice of source word ", j, " of ", source);
}

}  // namespace fovea
