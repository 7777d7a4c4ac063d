#include "train/loss_spike.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea {
namespace {

constexpr int64_t kFewest = 50;     // with fewer losses, limit() is infinite
constexpr int64_t kMemory = 50;     // number of losses in the moving mean
constexpr int64_t kInARow = 5;      // number of high losses in a row that make a rise
constexpr double kDeviations = 5;   // σ
constexpr double kSmallest = 0.02;  // lower bound of σ / mean

}  // namespace

double SpikeWatch::limit() const {
  if (seen < kFewest) return std::numeric_limits<double>::infinity();
  return mean + kDeviations * std::max(std::sqrt(variance), kSmallest * std::abs(mean));
}

bool SpikeWatch::take(double loss) {
  if (loss > limit()) return ++high >= kInARow;
  high = 0;
  const double share = 1 / static_cast<double>(std::min(++seen, kMemory));
  const double away = loss - mean;
  mean += share * away;
  variance = (1 - share) * (variance + share * away * away);
  return false;
}

}  // namespace fovea
