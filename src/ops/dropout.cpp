#include "ops/dropout.h"

namespace fovea {
namespace {
thread_local DropoutScope* live_scope = nullptr;
}

DropoutScope::DropoutScope(uint64_t seed, uint32_t step, const int32_t* step_at)
    : seed_(seed), step_(step), step_at_(step_at), outer_(live_scope) {
  live_scope = this;
}
DropoutScope::~DropoutScope() { live_scope = outer_; }

Dropout dropout_key(double rate) {
  if (!live_scope || rate <= 0) return {};
  const DropoutScope& scope = *live_scope;
  return {static_cast<float>(rate), scope.seed_, scope.step_, live_scope->next_++, scope.step_at_};
}

}  // namespace fovea
