#pragma once

#include <string>
#include <vector>

#include "view/annotations.h"

namespace fovea {

// Marks as single characters in the cells of a terminal.
struct MarkSigns {
  std::string position, kappa, chosen, barred;
  std::string kappa_name, sigma_name;
  std::vector<std::string> heights;  // of a Gaussian, lowest first

  static MarkSigns blocks();
  static MarkSigns ascii();

  // What stands in the right half of a cell: p_t or κ that lies in it (a number where several κ
  // do), or that it was chosen; empty mostly.
  std::string at(const MatrixAnnotations& marks, size_t i, size_t j) const;

  // What the signs mean, and the marks' note, in lines of at most `width` columns.
  std::vector<std::string> legend(const MatrixAnnotations& marks, int width) const;

 private:
  std::string gaussian(const MatrixAnnotations& marks, int width) const;
};

}  // namespace fovea
