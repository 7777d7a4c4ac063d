#include "attention/attention.h"

#include "ops/recurrent.h"
#include "ops/shape.h"

namespace fovea {
namespace {

template <class Part>
Before each(const Before& before, Part part) {
  auto some = [&](const Tensor& x) { return x ? part(x) : x; };
  return {before.steps, some(before.weights), some(before.covered), some(before.kappa),
          some(before.context)};
}

}  // namespace

Before first_rows(const Before& before, int64_t count) {
  return each(before, [&](const Tensor& x) { return x.rows() == count ? x : rows(x, 0, count); });
}

Before chosen_rows(const Before& before, const Tensor& rows) {
  return each(before, [&](const Tensor& x) { return rows_at(x, rows); });
}

}  // namespace fovea
