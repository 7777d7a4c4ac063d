#pragma once

#include <string>
#include <vector>

#include "view/annotations.h"

namespace fovea {

// The characters that represent marks in the cells of a terminal map.
struct MarkSigns {
  std::string position, centre, chosen, barred, sigma;
  std::vector<std::string> heights;  // characters that draw a Gaussian, lowest first
  enum class Names { ascii, any } names;

  static MarkSigns blocks();
  static MarkSigns ascii();

  // Returns the right half of cell (i, j): the sign of the first series that has a mark in the
  // cell. If a cell has several centres, it is their number. If no series has a mark in the cell,
  // returns "".
  std::string at(const MatrixAnnotations& marks, size_t i, size_t j) const;

  // Returns the meanings of the signs and the note of the marks, in lines of at most `width`
  // terminal columns.
  std::vector<std::string> legend(const MatrixAnnotations& marks, int width) const;

 private:
  const std::string& name_of(const MatrixSeries& series) const {
    return names == Names::ascii ? series.name : series.label;
  }
  std::string meaning(const MatrixSeries& series) const;
  std::string gaussian(const MatrixSeries& series, int width) const;
};

}  // namespace fovea
