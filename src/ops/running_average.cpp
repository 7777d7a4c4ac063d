#include "ops/running_average.h"

#include "ops/elementwise.h"
#include "ops/running_average_kernel.h"
#include "ops/shape.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

template <class T>
kernel::AverageInput<T> kernel_input(const Tensor& f, const Tensor& x,
                                     const SentenceOffsets& sentences) {
  return {sentences.offsets.data<int32_t>(), sentences.sentences, f.in<T>(), x.in<T>()};
}

// Calls write with the gradient of a tensor, or with an absent tensor if it needs none.
void gather_or_skip(const std::shared_ptr<GradientSlot>& slot,
                    const std::function<void(const Tensor& dx, OutputMode fold)>& write) {
  slot ? slot->gather(write) : write({}, OutputMode::set);
}

}  // namespace

Tensor running_average(const Tensor& f, const Tensor& x, const SentenceOffsets& sentences) {
  assert(f.shape() == x.shape() && f.rows() == sentences.tokens);
  Tensor c = Tensor::like(x);
  run(x, [&]<class T>(auto on, T) {
    kernel::running_average<T>(on, kernel_input<T>(f, x, sentences), c.out<T>());
  });
  return record(c, {f, x}, [=, y = c.view(c.shape())](const Tensor& dy) {
    gather_or_skip(f.slot(), [&](const Tensor& df, OutputMode fold_f) {
      gather_or_skip(x.slot(), [&](const Tensor& dx, OutputMode fold_x) {
        run(x, [&]<class T>(auto on, T) {
          kernel::running_average_grad<T>(
              on, kernel_input<T>(f, x, sentences),
              {y.in<T>(), dy.in<T>(), df.out<T>(), dx.out<T>(), fold_f, fold_x});
        });
      });
    });
  });
}

Tensor running_average_reference(const Tensor& f, const Tensor& x,
                                 const SentenceOffsets& sentences) {
  const Tensor offsets = sentences.offsets.to(Cpu{});
  const int32_t* at = offsets.data<int32_t>();
  const Tensor one = Tensor::of({1}, std::vector<double>{1}, f.type(), f.device());
  const Tensor fresh = (f * -1.0 + one) * x;  // (1 − f_t) x_t
  std::vector<Tensor> words;
  for (int64_t b = 0; b < sentences.sentences; ++b)
    for (int64_t t = at[b]; t < at[b + 1]; ++t) {
      const Tensor now = rows(fresh, t, 1);
      words.push_back(t == at[b] ? now : rows(f, t, 1) * words.back() + now);
    }
  return concat_rows(words);
}

Tensor average_step(const Tensor& f, const Tensor& x, const Tensor& states,
                    const Tensor& previous) {
  assert(f.shape() == x.shape() && states.cols() == x.cols() && previous.elements() == x.rows() &&
         x.device() == Device{Cpu{}});
  Tensor y = Tensor::like(x);
  run(x, [&]<class T>(auto on, T) {
    if constexpr (std::is_same_v<decltype(on), Cpu>)
      kernel::average_step<T>(on, f.in<T>(), x.in<T>(), states.in<T>(), previous.data<int32_t>(),
                              y.out<T>());
  });
  return y;
}

}  // namespace fovea
