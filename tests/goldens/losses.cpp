#include "goldens/case.h"
#include "ops/cross_entropy.h"

namespace fovea::goldens {
namespace {

// Words with the padding label are omitted; the loss is the sum or the mean.
void cross_entropy_case(Case& c) {
  std::vector<int32_t> labels = c.integers("in.labels");
  const auto pad = static_cast<int32_t>(c.number("in.pad"));
  double kept = 0;
  std::vector<double> mask;
  for (int32_t& label : labels) {
    if (label == pad) label = -1;
    mask.push_back(label >= 0);
    kept += mask.back();
  }
  c.expect("in.tgt_mask", mask);
  const bool mean = c.name() != "cross_entropy_smooth_sum";
  const Tensor logits = c.tracked("in.logits");
  Tape tape;
  const CrossEntropy found = cross_entropy(logits, c.of(labels), c.number("in.label_smoothing"));
  const double scale = mean ? 1 / kept : 1;
  c.expect("out.main", std::vector<double>{found.loss.values()[0] * scale});
  std::vector<double> each;
  const int64_t rows = logits.rows();
  for (int64_t i = 0; i < rows; ++i)
    each.push_back(cross_entropy(logits.view({rows, logits.cols()}).window(i, 1),
                                 c.of(std::vector<int32_t>{labels[static_cast<size_t>(i)]}),
                                 c.number("in.label_smoothing"))
                       .loss.values()[0]);
  c.expect("out.per_token", each);
  tape.backward(found.loss, c.number("in.loss_weight") * scale);
  c.expect("grad.in.logits", logits.grad());
}

}  // namespace

void add_loss_cases(std::map<std::string, Run>& cases) {
  for (const char* name :
       {"cross_entropy_mean", "cross_entropy_smooth_mean", "cross_entropy_smooth_sum"})
    cases[name] = cross_entropy_case;
}

}  // namespace fovea::goldens
