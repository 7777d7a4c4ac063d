#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fovea {

struct ScatterPoint {
  std::string name;
  double x, y;          // if x or y is not finite, the point is omitted
  size_t group;         // 0, 1, …; all points of a group have one colour
  bool centre = false;  // true: drawn larger, with lines to the other points of its group
};

// Points in a plane, such as a map of words.
struct ScatterPlot {
  std::string title, note;
  std::vector<ScatterPoint> points;
};

// Returns the points as an SVG file, with the same scale on both axes and a name beside each point.
// Names do not overlap if there is space. If a name is far from its point, a line joins them.
std::string svg_scatter(const ScatterPlot& scatter);

}  // namespace fovea
