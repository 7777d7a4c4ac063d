#include "ops/cross_entropy.h"

#include <optional>

#include "support/parity.h"

namespace fovea::parity {
namespace {

// Labels, some of which are −1, so that their rows are omitted.
Tensor labels_for(Trial& t, int64_t rows, int64_t words) {
  std::vector<int32_t> labels(static_cast<size_t>(rows));
  for (int32_t& label : labels)
    label = t.random().below(5) == 0
                ? -1
                : static_cast<int32_t>(t.random().below(static_cast<uint64_t>(words)));
  return t.integers(labels);
}

void expect_loss(Trial& t, const CrossEntropy& found) {
  t.expect("loss", found.loss);
  t.expect_value("log_likelihood", found.log_likelihood);
}

void output_case(Trial& t, const Sizes& n) {
  const Tensor x = t.input({n[0], n[1]}), W = t.input({n[2], n[1]}, 0.3);
  const Tensor b = t.number() % 3 ? t.input({n[2]}, 0.3) : Tensor();
  expect_loss(t, output_loss(x, W, b, labels_for(t, n[0], n[2]), t.drops() ? 0.1 : 0));
}

TEST(Parity, CrossEntropy) {
  Family family("cross entropy");
  const Shapes logits{.largest = {100, 500}, .large = {{200, 4001}, {20, 32003}, {5000, 8}}};
  const Shapes outputs{.largest = {60, 50, 90}, .large = {{300, 64, 1003}, {70, 32, 8003}}};
  family.check("of logits", Bar::elementwise, logits, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]}, 2);
    expect_loss(t, cross_entropy(x, labels_for(t, n[0], n[1]), 0));
  });
  family.check("of logits, smoothed", Bar::elementwise, logits, [](Trial& t, const Sizes& n) {
    const Tensor x = t.input({n[0], n[1]}, 2);
    expect_loss(t, cross_entropy(x, labels_for(t, n[0], n[1]), 0.1));
  });
  family.check("of the output layer", Bar::products, outputs, output_case);
  family.check("of the output layer in parts", Bar::products, outputs,
               [](Trial& t, const Sizes& n) {
                 std::optional<LogitsScope> parts;
                 if (t.type() != ElementType::f64)
                   parts.emplace(1);  // the reference uses one chunk
                 output_case(t, n);
               });
  family.check_forward("of the output layer alone", Bar::products, outputs, output_case);
}

}  // namespace
}  // namespace fovea::parity
