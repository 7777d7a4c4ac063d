#include "view/principal_plane.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace fovea {
namespace {

using Numbers = std::vector<double>;

constexpr int kIterations = 1000;
constexpr double kEnough = 1e-12;

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Subtracts the mean from the points and returns the matrix of the dot products of all pairs of
// points. Its eigenvectors give the coordinates of the points. It is small, because there are fewer
// points than dimensions.
std::vector<Numbers> products_of_centred(std::vector<Numbers> points) {
  const size_t n = points.size(), size = points.front().size();
  for (size_t j = 0; j < size; ++j) {
    double mean = 0;
    for (const Numbers& p : points) mean += p[j] / static_cast<double>(n);
    for (Numbers& p : points) p[j] -= mean;
  }
  std::vector<Numbers> products(n, Numbers(n));
  for (size_t i = 0; i < n; ++i)
    for (size_t k = 0; k <= i; ++k) products[i][k] = products[k][i] = dot(points[i], points[k]);
  return products;
}

struct Axis {
  Numbers direction;  // of length 1
  double length = 0;  // its eigenvalue
};

// Returns the eigenvector with the largest eigenvalue, by power iteration. If `first` is not null,
// the result is orthogonal to it.
Axis largest(const std::vector<Numbers>& matrix, const Axis* first) {
  const size_t n = matrix.size();
  Axis axis{Numbers(n), 0};
  // The start vector. No symmetry of the points makes it orthogonal to the result.
  for (size_t i = 0; i < n; ++i) axis.direction[i] = std::sin(1.0 + 1.7 * static_cast<double>(i));
  Numbers next(n);
  for (int round = 0; round < kIterations; ++round) {
    for (size_t i = 0; i < n; ++i) next[i] = dot(matrix[i], axis.direction);
    if (first) {
      const double along = dot(next, first->direction);
      for (size_t i = 0; i < n; ++i) next[i] -= along * first->direction[i];
    }
    const double norm = std::sqrt(dot(next, next));
    if (!(norm > 1e-300)) return {Numbers(n), 0};  // the points do not vary in it
    double change = 0;
    for (size_t i = 0; i < n; ++i) {
      change += std::abs(next[i] / norm - axis.direction[i]);
      axis.direction[i] = next[i] / norm;
    }
    axis.length = norm;
    if (change < kEnough) break;
  }
  return axis;
}

Numbers coordinates(const Axis& axis) {
  Numbers along = axis.direction;
  double farthest = 0;
  for (const double x : along)
    if (std::abs(x) > std::abs(farthest) + 1e-9) farthest = x;
  const double scale = std::copysign(std::sqrt(axis.length), farthest);
  for (double& x : along) x *= scale;
  return along;
}

}  // namespace

std::vector<std::array<double, 2>> principal_plane(const std::vector<Numbers>& points) {
  if (points.empty()) return {};
  for (const Numbers& p : points)
    check(p.size() == points.front().size(), ExitCode::data, "points of ", points.front().size(),
          " and of ", p.size(), " numbers cannot lie in one plane");
  const auto products = products_of_centred(points);
  const Axis first = largest(products, nullptr);
  Axis second = largest(products, &first);
  if (second.length < first.length * 1e-9) second = {Numbers(points.size()), 0};
  const Numbers x = coordinates(first), y = coordinates(second);
  std::vector<std::array<double, 2>> plane;
  for (size_t i = 0; i < points.size(); ++i) plane.push_back({x[i], y[i]});
  return plane;
}

std::vector<double> direction(std::span<const float> vector) {
  std::vector<double> unit(vector.begin(), vector.end());
  double squares = 0;
  for (const double x : unit) squares += x * x;
  for (double& x : unit) x /= squares > 0 ? std::sqrt(squares) : 1;
  return unit;
}

}  // namespace fovea
