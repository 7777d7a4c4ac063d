#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fovea {

struct ScatterPoint {
  std::string name;
  double x, y;          // a point that is not finite is left out
  size_t group;         // 0, 1, …: its colour
  bool centre = false;  // drawn larger; the others of its group are joined to it
};

// Points in a plane, such as a map of words.
struct ScatterPlot {
  std::string title, note;
  std::vector<ScatterPoint> points;
};

// The map as an SVG file, both axes on one scale, each point with its name beside it. Names move
// out of each other's way; a name that has moved far is joined to its point by a line.
std::string svg_scatter(const ScatterPlot& scatter);

}  // namespace fovea
