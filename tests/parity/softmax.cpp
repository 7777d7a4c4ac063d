#include "ops/softmax.h"

#include "support/parity.h"

namespace fovea::parity {
namespace {

// 1 or 0, with at least one 1 per row.
Tensor keep_mask(Trial& t, int64_t rows, int64_t columns) {
  std::vector<double> keep(static_cast<size_t>(rows * columns));
  for (double& k : keep) k = t.random().below(3) > 0;
  for (int64_t i = 0; i < rows; ++i)
    keep[static_cast<size_t>(i * columns) + t.random().below(static_cast<uint64_t>(columns))] = 1;
  return t.numbers({rows, columns}, keep);
}

TEST(Parity, Softmax) {
  Family family("softmax");
  family.check("whole rows", Bar::elementwise,
               {.largest = {200, 700}, .large = {{1000, 300}, {20, 32003}, {100003, 3}}},
               [](Trial& t, const Sizes& n) {
                 t.expect("y", softmax(t.input({n[0], n[1]}, 3)));
               });
  family.check("masked, a row of the mask for several", Bar::elementwise,
               {.largest = {20, 12, 200}, .large = {{64, 37, 129}, {3, 2, 5003}}},
               [](Trial& t, const Sizes& n) {
                 const Tensor x = t.input({n[0], n[1], n[2]}, 3);
                 t.expect("y", softmax(x, keep_mask(t, n[0], n[2])));
               });
  family.check("masked, each row its own", Bar::elementwise,
               {.largest = {130, 300}, .large = {{1000, 1023}}}, [](Trial& t, const Sizes& n) {
                 t.expect("y", softmax(t.input({n[0], n[1]}, 3), keep_mask(t, n[0], n[1])));
               });
}

}  // namespace
}  // namespace fovea::parity
