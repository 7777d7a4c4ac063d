#pragma once

#include <array>
#include <span>
#include <vector>

namespace fovea {

// Projects points onto the plane of their largest variance (principal component analysis). Returns
// their coordinates along the first and the second axis, where the mean is (0, 0). The sign of an
// axis is such that the point farthest from 0 has a positive coordinate. REQUIRES: all points have
// the same number of coordinates.
std::vector<std::array<double, 2>> principal_plane(const std::vector<std::vector<double>>& points);

// Returns the vector scaled to length 1. A zero vector does not change.
std::vector<double> direction(std::span<const float> vector);

}  // namespace fovea
