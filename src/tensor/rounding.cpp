#include "tensor/rounding.h"

namespace fovea {
namespace {
thread_local RoundingNoise* active = nullptr;
}  // namespace

RoundingNoise::RoundingNoise(double unit, uint64_t seed) : unit_(unit), random_(seed) {
  active = this;
}
RoundingNoise::~RoundingNoise() { active = nullptr; }

void RoundingNoise::change(const Tensor& x) {
  if (!active || !x || x.type() != ElementType::f64) return;
  auto* const values = x.data<double>();
  const int64_t count = x.elements();
  const double factor[2] = {1 - active->unit_, 1 + active->unit_};
  uint32_t signs = 0;  // one random bit (+ or −) for each of the next 32 numbers
  for (int64_t i = 0; i < count; ++i, signs >>= 1) {
    if (i % 32 == 0) signs = active->random_.bits32();
    values[i] *= factor[signs & 1];
  }
}

}  // namespace fovea
