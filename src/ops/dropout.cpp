#include "ops/dropout.h"

namespace fovea {
namespace {
thread_local DropoutScope* live_scope = nullptr;
}

DropoutScope::DropoutScope(uint64_t seed, uint32_t step)
    : seed_(seed), step_(step), outer_(live_scope) {
  live_scope = this;
}
DropoutScope::~DropoutScope() { live_scope = outer_; }

Dropout dropout_key(double rate) {
  if (!live_scope || rate <= 0) return {};
  return {static_cast<float>(rate), live_scope->seed_, live_scope->step_, live_scope->next_++};
}

}  // namespace fovea
