#include "ops/topk.h"

#include "ops/topk_kernel.h"

namespace fovea {

TopK top_k(const Tensor& x, int64_t k) {
  TopK best{Tensor({x.rows()}, x.type(), x.device()), Tensor({x.rows(), k}, x.type(), x.device()),
            Tensor({x.rows(), k}, Type::i32, x.device())};
  run(x, [&]<class T>(auto on, T) {
    kernel::top_k(on, x.in<T>(), best.log_sum.data<T>(), best.values.out<T>(),
                  best.columns.out<int32_t>());
  });
  return best;
}

Tensor mean_probabilities(std::span<const Tensor> scores) {
  Tensor mean = Tensor::like(scores.front());
  Fold fold = Fold::set;
  for (const Tensor& x : scores) {
    run(x, [&]<class T>(auto on, T) {
      const T share = T{1} / static_cast<T>(scores.size());
      kernel::add_probabilities(on, x.in<T>(), share, fold, mean.out<T>());
    });
    fold = Fold::add;
  }
  return mean;
}

}  // namespace fovea
