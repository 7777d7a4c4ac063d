#pragma once

#include <string>
#include <vector>

namespace fovea {

struct Curve {
  std::string name;
  std::vector<double> x,
      y;  // as many of each; a point beyond ±1e100 or not a number breaks the line
};

struct Chart {
  std::string title, x_name, y_name;
  std::vector<Curve> curves;
};

// The curves as an SVG file with axes, ticks at round numbers and a legend. Where several points
// share a column of pixels the line shows their mean and a pale band their range.
std::string svg_chart(const Chart& chart);

}  // namespace fovea
