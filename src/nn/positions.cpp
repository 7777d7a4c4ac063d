#include "nn/positions.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <utility>
#include <vector>

#include "ops/embedding.h"

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

struct GrowingTable::Shared {
  Make make;
  std::mutex mutex;
  int64_t length = 0;
  std::vector<Tensor> tables;  // by length; CUDA graphs may still read shorter tables
};

GrowingTable::GrowingTable(Make make) : shared_(new Shared{std::move(make), {}, 0, {}}) {}

Tensor GrowingTable::covering(int64_t length) const {
  const std::lock_guard hold(shared_->mutex);
  if (shared_->length < length || shared_->tables.empty()) {
    shared_->length = std::max<int64_t>(2 * length, 64);
    shared_->tables.push_back(shared_->make(shared_->length));
  }
  return shared_->tables.back();
}

GrowingTable sinusoid_table(SinusoidLayout layout, int64_t D, ElementType type, Device device) {
  return GrowingTable([=](int64_t length) { return sinusoids(layout, length, D, type, device); });
}

int64_t DistanceBuckets::bucket(int64_t distance) const {
  const bool both = directions == Directions::both;
  const int64_t count = both ? buckets / 2 : buckets, exact = count / 2;
  const int64_t first = both && distance > 0 ? count : 0;
  const int64_t steps = both ? std::abs(distance) : std::max<int64_t>(-distance, 0);
  if (steps < exact) return first + steps;
  // In float, as the published models compute it: rounding decides at the edges of buckets.
  const float share =
      std::log(static_cast<float>(steps) / static_cast<float>(exact)) /
      static_cast<float>(std::log(static_cast<double>(longest) / static_cast<double>(exact)));
  const auto further = static_cast<int64_t>(share * static_cast<float>(count - exact));
  return first + std::min(count - 1, exact + further);
}

namespace {

Tensor bucket_table(const DistanceBuckets& rules, int64_t length, Device device) {
  std::vector<int32_t> table;
  for (int64_t d = 1 - length; d < length; ++d)
    table.push_back(static_cast<int32_t>(rules.bucket(d)));
  return Tensor::of(table, device);
}

}  // namespace

RelativePositions::RelativePositions(ParameterScope scope, const DistanceBuckets& rules,
                                     int64_t heads, double deviation)
    : scores(scope.declare("bias", {rules.buckets, heads}, ParameterInit::normal(deviation))),
      buckets([rules, device = scope.store.device()](int64_t length) {
        return bucket_table(rules, length, device);
      }) {}

Tensor RelativePositions::for_length(int64_t longest) const {
  const int64_t length = std::max<int64_t>(longest, 1);
  const Tensor all = buckets.covering(length);
  const int64_t reach = (all.elements() - 1) / 2;
  return scores_of(all.window(reach - (length - 1), 2 * length - 1));
}

Tensor RelativePositions::scores_of(const Tensor& of_buckets) const {
  return embed(scores, {}, {of_buckets, {}, 1, {}});
}

Tensor distance_scores(const std::optional<RelativePositions>& positions, int64_t longest) {
  return positions ? positions->for_length(longest) : Tensor();
}

}  // namespace fovea
