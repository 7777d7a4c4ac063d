#include "ops/cross_entropy.h"

#include <algorithm>

#include "ops/cross_entropy_kernel.h"
#include "ops/elementwise_kernel.h"
#include "ops/halves.h"
#include "ops/matmul.h"
#include "ops/matmul_kernel.h"
#include "ops/product.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

// As many rows as have their logits in the cache; but where the weights are wide, reading them and
// their gradient once more costs more than logits outside the cache, which take 64 MiB at most.
// A GPU needs more rows at once to be busy: its logits take 512 MiB at most.
int64_t rows_at_a_time(int64_t words, int64_t width, Device device) {
  const auto rows_of = [&](int64_t logits) { return logits / std::max<int64_t>(words, 1); };
  if (!std::holds_alternative<Cpu>(device)) return std::max<int64_t>(rows_of(128 << 20), 64);
  const int64_t cached = rows_of(3 << 20), most = rows_of(16 << 20);
  return std::clamp<int64_t>(std::max(cached, std::min(width, most)), 64, 2048);
}

constexpr int64_t kWorthHalves = 512;  // rows

Tensor total(const Tensor& losses) {
  Tensor loss({1}, losses.type(), losses.device());
  run(losses, [&]<class T>(auto on, T) { kernel::sum(on, losses.in<T>(), loss.data<T>()); });
  return loss;
}

}  // namespace

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing) {
  Tensor losses({logits.rows()}, logits.type(), logits.device());
  Tensor likelihood = Tensor::like(losses);
  run(logits, [&]<class T>(auto on, T) {
    kernel::cross_entropy<T>(on, {logits.in<T>(), labels.data<int32_t>(), smoothing},
                             losses.data<T>(), likelihood.data<T>());
  });
  Tensor loss = record(total(losses), {logits}, [=](const Tensor& dy) {
    gather(logits.slot(), [&](const Tensor& dx, Fold fold) {  // dz = dL (softmax − q)
      run(logits, [&]<class T>(auto on, T) {
        kernel::cross_entropy_grad<T, T>(on, {logits.in<T>(), labels.data<int32_t>(), smoothing},
                                         dy.data<T>(), losses.data<T>(), likelihood.data<T>(),
                                         dx.out<T>(), fold);
      });
    });
  });
  return {loss, likelihood};
}

namespace {

// The gradients of the loss for an upstream gradient of 1, made together with the loss.
struct Gradients {
  Tensor dx, dW, db;
};

struct Output {
  Tensor x, W;  // as operands
  Tensor b, labels;
  double smoothing;
  Tensor losses, likelihood;
};

// launch(on) for the device of x, which has no kernels for double unless it is the CPU.
template <class In, class Launch>
void run_on(const Tensor& x, Launch launch) {
  std::visit(
      [&](auto on) {
        if constexpr (std::is_same_v<decltype(on), Cpu> || !std::is_same_v<In, double>)
          launch(on);
        else
          assert(!"double tensors live on the CPU");
      },
      x.device());
}

// One run of rows: logits, loss, and its share of the gradients, folded into those of W and b.
template <class In>
void loss_of_rows(const Output& in, int64_t first, int64_t count, const Gradients& to, Fold fold) {
  using kernel::Side;
  using T = std::conditional_t<std::is_same_v<In, double>, double, float>;
  const Tensor x = in.x.window(first, count);
  Tensor logits({count, in.W.size(0)}, type_of<T>(), x.device());
  multiply({x, Side::as_is, in.W, Side::transposed}, logits, in.b, Fold::set, Keep::always);
  Tensor dz = to.dx ? Tensor(logits.shape(), type_of<In>(), x.device()) : Tensor();
  run_on<In>(x, [&](auto on) {
    kernel::cross_entropy_grad<T, In>(
        on, {logits.in<T>(), in.labels.data<int32_t>() + first, in.smoothing}, nullptr,
        in.losses.data<T>() + first, in.likelihood.data<T>() + first, dz.out<In>(), Fold::set);
  });
  if (!dz) return;
  multiply({dz, Side::as_is, in.W, Side::as_is}, to.dx.window(first, count), {}, Fold::set,
           Keep::always);
  multiply({dz, Side::transposed, x, Side::as_is}, to.dW, {}, fold);
  if (to.db)
    run_on<In>(x, [&](auto on) { kernel::column_sums(on, dz.in<In>(), to.db.data<T>(), fold); });
}

void loss_of(const Output& in, int64_t first, int64_t count, const Gradients& to) {
  const int64_t step = rows_at_a_time(in.W.size(0), in.W.size(1), in.x.device());
  for (int64_t at = first; at < first + count; at += step) {
    const int64_t rows = std::min(step, first + count - at);
    const Fold fold = at == first ? Fold::set : Fold::add;
    if (in.x.type() == Type::bf16)
      loss_of_rows<bf16>(in, at, rows, to, fold);
    else if (in.x.type() == Type::f64)
      loss_of_rows<double>(in, at, rows, to, fold);
    else
      loss_of_rows<float>(in, at, rows, to, fold);
  }
}

void add_to(const Tensor& y, const Tensor& x) {
  run(y, [&]<class T>(auto on, T) { kernel::scale(on, x.in<T>(), 1, y.out<T>(), Fold::add); });
}

// Each half of the rows has logits and gradients of its own (Note [Halves]).
void loss_in_halves(const Output& in, const Gradients& to) {
  Gradients second = to;
  if (to.dx) second.dW = Tensor::like(to.dW);
  if (to.db) second.db = Tensor::like(to.db);
  kernel::in_halves(in.x.rows(), [&](int half, int64_t first, int64_t count) {
    loss_of(in, first, count, half ? second : to);
  });
  if (to.dx) add_to(to.dW, second.dW);
  if (to.db) add_to(to.db, second.db);
}

void scaled_into(const std::shared_ptr<Slot>& slot, const Tensor& gradient, const Tensor& dy) {
  gather(slot, [&](const Tensor& out, Fold fold) {
    run(dy, [&]<class T>(auto on, T) {
      kernel::scale_by(on, gradient.in<T>(), dy.data<T>(), out.out<T>(), fold);
    });
  });
}

}  // namespace

CrossEntropy output_loss(const Tensor& x, const Tensor& W, const Tensor& b, const Tensor& labels,
                         double smoothing) {
  const int64_t N = x.rows();
  const Tensor operand = as_operand(x), weights = as_operand(W);
  Output in{operand, weights, b, labels, smoothing, Tensor({N}, x.type(), x.device()), {}};
  in.likelihood = Tensor::like(in.losses);
  Gradients to;
  if (Tape::live())
    to = {Tensor::like(x), N ? Tensor::like(W) : Tensor::zeros(W.shape(), W.type(), W.device()),
          b ? Tensor::zeros(b.shape(), b.type(), b.device()) : Tensor()};
  if (x.device() == Device{Cpu{}} && N >= kWorthHalves)
    loss_in_halves(in, to);
  else
    loss_of(in, 0, N, to);
  Tensor loss = record(total(in.losses), {x, W, b},
                       [=, to_x = x.slot(), to_W = W.slot(), to_b = b.slot()](const Tensor& dy) {
                         scaled_into(to_x, to.dx, dy);
                         scaled_into(to_W, to.dW, dy);
                         if (to_b) scaled_into(to_b, to.db, dy);
                       });
  return {loss, in.likelihood};
}

CrossEntropy output_loss_reference(const Tensor& x, const Tensor& W, const Tensor& b,
                                   const Tensor& labels, double smoothing) {
  return cross_entropy(linear(x, W, b), labels, smoothing);
}

}  // namespace fovea
