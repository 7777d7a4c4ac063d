#include "nn/positions.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

namespace fovea {

Tensor sinusoids(SinusoidLayout layout, int64_t count, int64_t D, ElementType type, Device device) {
  assert(D % 2 == 0);
  const int64_t half = D / 2;
  std::vector<double> table(static_cast<size_t>(count * D));
  for (int64_t pos = 0; pos < count; ++pos)
    for (int64_t i = 0; i < half; ++i) {
      const double exponent =
          layout == SinusoidLayout::half_m1
              ? static_cast<double>(i) / static_cast<double>(std::max<int64_t>(half - 1, 1))
              : 2.0 * static_cast<double>(i) / static_cast<double>(D);
      const double angle = static_cast<double>(pos) * std::pow(10000.0, -exponent);
      double* row = table.data() + pos * D;
      row[layout == SinusoidLayout::interleaved ? 2 * i : i] = std::sin(angle);
      row[layout == SinusoidLayout::interleaved ? 2 * i + 1 : half + i] = std::cos(angle);
    }
  return Tensor::of({count, D}, table, type, device);
}

struct SinusoidTable::Shared {
  SinusoidLayout layout;
  int64_t D;
  ElementType type;
  Device device;
  std::mutex mutex;
  std::vector<Tensor> tables;  // from short to long; CUDA graphs may still read short ones
};

SinusoidTable::SinusoidTable(SinusoidLayout layout, int64_t D, ElementType type, Device device)
    : shared_(new Shared{layout, D, type, device, {}, {}}) {}

Tensor SinusoidTable::rows(int64_t count) const {
  const std::lock_guard hold(shared_->mutex);
  std::vector<Tensor>& tables = shared_->tables;
  if (tables.empty() || tables.back().size(0) < count)
    tables.push_back(sinusoids(shared_->layout, std::max<int64_t>(2 * count, 64), shared_->D,
                               shared_->type, shared_->device));
  return tables.back();
}

}  // namespace fovea
