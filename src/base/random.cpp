#include "base/random.h"

#include <cmath>

namespace fovea {
namespace {

// ln x for x > 0, computed by explicit fused operations. Unlike std::log, the result has the same
// bits on every machine.
// x = m·2^e with √½ ≤ m < √2, and ln m = 2 artanh z = 2 (z + z³/3 + z⁵/5 + …), z = (m−1)/(m+1).
double portable_log(double x) {
  int e = 0;
  double m = std::frexp(x, &e);
  if (m < 0.70710678118654752) {
    m *= 2;
    --e;
  }
  const double z = (m - 1) / (m + 1), z2 = z * z;
  double sum = 1.0 / 21;
  for (int k = 19; k >= 1; k -= 2) sum = std::fma(sum, z2, 1.0 / k);
  return std::fma(static_cast<double>(e), 0.69314718055994531, 2 * z * sum);
}

}  // namespace

// Marsaglia's polar method. It gives two numbers; this function uses only x √(−2 ln s / s), where s
// = x² + y² < 1.
double Random::normal() {
  for (;;) {
    const double x = std::fma(2.0, uniform(), -1.0), y = std::fma(2.0, uniform(), -1.0);
    const double s = std::fma(x, x, y * y);
    if (s > 0 && s < 1) return x * std::sqrt(-2 * portable_log(s) / s);
  }
}

}  // namespace fovea
