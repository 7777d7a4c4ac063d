#include "ops/dropout.h"

#include <cassert>
#include <optional>

namespace fovea {
namespace {
thread_local DropoutScope* live_scope = nullptr;
thread_local std::optional<uint32_t> only;
}  // namespace

DropoutScope::DropoutScope(uint64_t seed, uint32_t step, const int32_t* step_at)
    : seed_(seed), step_(step), step_at_(step_at), outer_(live_scope) {
  live_scope = this;
}
DropoutScope::~DropoutScope() { live_scope = outer_; }

OnlyDropout::OnlyDropout(uint32_t op) {
  assert(!only);
  only = op;
}
OnlyDropout::~OnlyDropout() { only.reset(); }

Dropout dropout_key(double rate) {
  if (!live_scope || rate <= 0) return {};
  const DropoutScope& scope = *live_scope;
  const uint32_t op = live_scope->next_++;
  if (only && *only != op) return {};
  return {static_cast<float>(rate), scope.seed_, scope.step_, op, scope.step_at_};
}

}  // namespace fovea
