#pragma once

#include <array>
#include <span>
#include <vector>

namespace fovea {

// Where each point falls in the plane that shows most of their differences (principal component
// analysis): coordinates along the first and second axis, the mean at (0, 0). An axis is turned
// such that its farthest point lies on its positive side. All points must have as many numbers.
std::vector<std::array<double, 2>> principal_plane(const std::vector<std::vector<double>>& points);

// The vector made as long as 1; one of zeros stays.
std::vector<double> direction(std::span<const float> vector);

}  // namespace fovea
