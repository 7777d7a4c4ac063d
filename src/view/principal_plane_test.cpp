#include "view/principal_plane.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"

namespace fovea {
namespace {

TEST(PrincipalPlane, FindsThePlaneThatPointsLieIn) {
  // Points 5 a + 2 b in a rotated plane of seven dimensions: the function finds the axes, longest
  // first.
  const std::vector<double> a{0.5, 0.5, 0.5, 0.5, 0, 0, 0}, b{0.5, -0.5, 0.5, -0.5, 0, 0, 0};
  Random random(3);
  std::vector<std::vector<double>> points;
  std::vector<double> u, v;
  for (int i = 0; i < 60; ++i) {
    u.push_back(5 * random.normal());
    v.push_back(random.normal());
    points.emplace_back();
    for (size_t j = 0; j < 7; ++j) points.back().push_back(u[i] * a[j] + v[i] * b[j] + 100);
  }
  const auto plane = principal_plane(points);
  ASSERT_EQ(plane.size(), 60u);
  for (int i = 0; i < 60; ++i)
    for (int k = 0; k < i; ++k) {  // the projection preserves distances
      const double was = std::hypot(u[i] - u[k], v[i] - v[k]);
      const double is = std::hypot(plane[i][0] - plane[k][0], plane[i][1] - plane[k][1]);
      EXPECT_NEAR(is, was, 1e-6);
    }
  double xx = 0, yy = 0, xy = 0, x = 0;
  for (const auto& p : plane) xx += p[0] * p[0], yy += p[1] * p[1], xy += p[0] * p[1], x += p[0];
  EXPECT_GT(xx, 9 * yy);
  EXPECT_NEAR(xy / xx, 0, 1e-6);
  EXPECT_NEAR(x, 0, 1e-6);
}

TEST(PrincipalPlane, AcceptsDegeneratePoints) {
  EXPECT_TRUE(principal_plane({}).empty());
  for (const auto& points : std::vector<std::vector<std::vector<double>>>{
           {{1, 2, 3}}, {{1, 1}, {1, 1}, {1, 1}}, {{0}, {1}, {2}}, {{0, 0}, {1, 1}, {3, 3}}})
    for (const auto& [x, y] : principal_plane(points)) {
      EXPECT_TRUE(std::isfinite(x));
      EXPECT_NEAR(y, 0, 1e-6);
    }
}

}  // namespace
}  // namespace fovea
