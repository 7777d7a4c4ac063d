#pragma once

#include <string>
#include <vector>

namespace fovea {

struct Curve {
  std::string name;
  std::vector<double> x,
      y;  // as long as x; NaN or a value beyond ±1e100 leaves a gap in the line
};

struct Chart {
  std::string title, x_name, y_name;
  std::vector<Curve> curves;
};

// Returns the curves as an SVG file with axes, ticks at round numbers and a legend. If several
// points of a curve are in one column of two pixels, the line shows their mean, and a pale band
// shows their range.
std::string svg_chart(const Chart& chart);

}  // namespace fovea
