#include "ops/topk.h"

#include "ops/topk_kernel.h"

namespace fovea {
namespace {

// The sizes of the tensors of a TopK, and of the one buffer that holds all three.
struct Sizes {
  int64_t rows, k;
  ElementType type;

  int64_t numbers() const { return rows * (1 + k); }  // numbers in log_sum and values together
  std::size_t bytes() const {
    return static_cast<std::size_t>(numbers()) * bytes_of(type) +
           static_cast<std::size_t>(rows * k) * sizeof(int32_t);
  }
};

// A TopK whose three tensors are parts of one buffer.
TopK in_buffer(const Sizes& s, const Buffer& buffer, Device device) {
  const auto columns_at = static_cast<std::size_t>(s.numbers()) * bytes_of(s.type);
  return {Tensor({s.rows}, s.type, device, buffer, 0),
          Tensor({s.rows, s.k}, s.type, device, buffer, s.rows),
          Tensor({s.rows, s.k}, ElementType::i32, device, buffer,
                 static_cast<int64_t>(columns_at / sizeof(int32_t)))};
}

}  // namespace

TopK on_host(const TopK& best) {
  const Device from = best.values.device();
  if (from == Device{Cpu{}}) return best;
  const Sizes sizes{best.values.rows(), best.values.cols(), best.values.type()};
  const Buffer copy = allocate(sizes.bytes(), Cpu{});
  download(best.log_sum.buffer().get(), copy.get(), sizes.bytes(), from);
  return in_buffer(sizes, copy, Cpu{});
}

TopK top_k(const Tensor& x, int64_t k) {
  const Sizes sizes{x.rows(), k, x.type()};
  TopK best = in_buffer(sizes, allocate(sizes.bytes(), x.device()), x.device());
  run(x, [&]<class T>(auto on, T) {
    kernel::top_k(on, x.in<T>(), best.log_sum.data<T>(), best.values.out<T>(),
                  best.columns.out<int32_t>());
  });
  return best;
}

Tensor mean_probabilities(std::span<const Tensor> scores) {
  Tensor mean = Tensor::like(scores.front());
  OutputMode fold = OutputMode::set;
  for (const Tensor& x : scores) {
    run(x, [&]<class T>(auto on, T) {
      const T share = T{1} / static_cast<T>(scores.size());
      kernel::add_probabilities(on, x.in<T>(), share, fold, mean.out<T>());
    });
    fold = OutputMode::add;
  }
  return mean;
}

}  // namespace fovea
