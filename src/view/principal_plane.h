#pragma once

#include <array>
#include <span>
#include <vector>

namespace fovea {

// Projects points on the plane of their largest variance (principal component analysis). Returns
// coordinates along the first and second axis; the mean is (0, 0). The farthest point of an axis is
// on its positive side. REQUIRES: all points have the same number of coordinates.
std::vector<std::array<double, 2>> principal_plane(const std::vector<std::vector<double>>& points);

// The vector scaled to length 1; a zero vector does not change.
std::vector<double> direction(std::span<const float> vector);

}  // namespace fovea
