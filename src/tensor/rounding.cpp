#include "tensor/rounding.h"

namespace fovea {
namespace {
thread_local Rounding* live = nullptr;
}  // namespace

Rounding::Rounding(double unit, uint64_t seed) : unit_(unit), random_(seed) { live = this; }
Rounding::~Rounding() { live = nullptr; }

void Rounding::change(const Tensor& x) {
  if (!live || !x || x.type() != Type::f64) return;
  std::vector<double> values = x.values();
  for (double& v : values) v *= live->random_.bits32() % 2 ? 1 + live->unit_ : 1 - live->unit_;
  x.assign(values);
}

}  // namespace fovea
