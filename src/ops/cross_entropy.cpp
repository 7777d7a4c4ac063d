#include "ops/cross_entropy.h"

#include <algorithm>
#include <limits>

#include "ops/cross_entropy_kernel.h"
#include "ops/elementwise_kernel.h"
#include "ops/halves.h"
#include "ops/matmul.h"
#include "ops/matmul_kernel.h"
#include "ops/product.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

thread_local int64_t most_logits = std::numeric_limits<int64_t>::max();

// As many rows as have their logits in the cache; but where the weights are wide, reading them and
// their gradient once more costs more than logits outside the cache, which take 64 MiB at most.
// A GPU needs more rows at once to be busy: its logits take 512 MiB at most, in parts of one size.
int64_t rows_at_a_time(int64_t rows, int64_t words, int64_t width, Device device) {
  const auto rows_of = [&](int64_t logits) {
    return std::min(logits, most_logits) / std::max<int64_t>(words, 1);
  };
  if (!std::holds_alternative<Cpu>(device)) {
    constexpr int64_t kBlock = 128;
    const int64_t most = std::max(rows_of(128 << 20), kBlock), parts = (rows + most - 1) / most;
    return (rows / std::max<int64_t>(parts, 1) + kBlock) / kBlock * kBlock;
  }
  const int64_t cached = rows_of(3 << 20), most = rows_of(16 << 20);
  return std::clamp<int64_t>(std::max(cached, std::min(width, most)), 64, kernel::kWorthHalves - 1);
}

Tensor total(const Tensor& losses) {
  Tensor loss({1}, losses.type(), losses.device());
  run(losses, [&]<class T>(auto on, T) { kernel::sum(on, losses.in<T>(), loss.data<T>()); });
  return loss;
}

}  // namespace

LogitsScope::LogitsScope(int64_t most) : outer_(most_logits) { most_logits = most; }
LogitsScope::~LogitsScope() { most_logits = outer_; }

CrossEntropy cross_entropy(const Tensor& logits, const Tensor& labels, double smoothing) {
  Tensor losses({logits.rows()}, logits.type(), logits.device());
  Tensor likelihood = Tensor::like(losses);
  run(logits, [&]<class T>(auto on, T) {
    kernel::cross_entropy<T>(on, {logits.in<T>(), labels.data<int32_t>(), smoothing, logits.cols()},
                             losses.data<T>(), likelihood.data<T>());
  });
  Tensor loss = record(total(losses), {logits}, [=](const Tensor& dy) {
    gather(logits.slot(), [&](const Tensor& dx, Fold fold) {  // dz = dL (softmax − q)
      run(logits, [&]<class T>(auto on, T) {
        kernel::cross_entropy_grad<T, T>(
            on, {logits.in<T>(), labels.data<int32_t>(), smoothing, logits.cols()}, dy.data<T>(),
            losses.data<T>(), likelihood.data<T>(), dx.out<T>(), fold);
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
  int64_t words;
  double smoothing;
  Tensor losses, likelihood;
};

// Note [Rows of whole packs]
// A GPU multiplies many times more slowly where rows do not begin at multiples of 16 bytes, as rows
// of logits do where the number of words is no multiple of 8. So words are added there whose
// weights are 0; they have no part in the loss, and their gradients are forgotten.
Tensor filled_up(const Tensor& x, int64_t rows) {
  if (!x || x.size(0) == rows) return x;
  Shape shape = x.shape();
  shape[0] = rows;
  Tensor y = Tensor::zeros(shape, x.type(), x.device());
  y.window(0, x.size(0)).copy_from(x);
  return y;
}

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

// One run of rows: logits, loss, and its share of the gradients, folded into those of W and b. A
// GPU rounds the logits as well.
template <class In, class On>
void loss_of_rows(On on, const Output& in, int64_t first, int64_t count, const Gradients& to,
                  Fold fold) {
  using kernel::Side;
  using T = Wide<In>;
  using Logit = std::conditional_t<std::is_same_v<On, Cpu>, T, In>;
  const Tensor x = in.x.window(first, count);
  Tensor logits({count, in.W.size(0)}, type_of<Logit>(), x.device());
  multiply({x, Side::as_is, in.W, Side::transposed}, logits, in.b, Fold::set, Keep::always);
  Tensor dz = to.dx ? Tensor(logits.shape(), type_of<In>(), x.device()) : Tensor();
  kernel::cross_entropy_grad<Logit, In>(
      on, {logits.in<Logit>(), in.labels.data<int32_t>() + first, in.smoothing, in.words}, nullptr,
      in.losses.data<T>() + first, in.likelihood.data<T>() + first, dz.out<In>(), Fold::set);
  if (!dz) return;
  multiply({dz, Side::as_is, in.W, Side::as_is}, to.dx.window(first, count), {}, Fold::set,
           Keep::always);
  multiply({dz, Side::transposed, x, Side::as_is}, to.dW, {}, fold);
  if (to.db) kernel::column_sums(on, dz.in<In>(), to.db.data<T>(), fold);
}

void loss_of(const Output& in, int64_t first, int64_t count, const Gradients& to) {
  const int64_t step = rows_at_a_time(count, in.W.size(0), in.W.size(1), in.x.device());
  for (int64_t at = first; at < first + count; at += step) {
    const int64_t rows = std::min(step, first + count - at);
    const Fold fold = at == first ? Fold::set : Fold::add;
    const auto compute = [&]<class In>(In) {
      run_on<In>(in.x, [&](auto on) { loss_of_rows<In>(on, in, at, rows, to, fold); });
    };
    if (in.x.type() == Type::bf16)
      compute(bf16{});
    else if (in.x.type() == Type::f64)
      compute(double{});
    else
      compute(float{});
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
  const int64_t N = x.rows(), words = W.size(0);
  const bool rounds = bf16_activations(x.device());
  const int64_t V = rounds ? (words + 7) / 8 * 8 : words;
  const Tensor bias = b && rounds ? as_operand(b) : b;
  Output in{as_operand(x),
            filled_up(as_operand(W), V),
            filled_up(bias, V),
            labels,
            words,
            smoothing,
            Tensor({N}, W.type(), x.device()),
            {}};
  in.likelihood = Tensor::like(in.losses);
  Gradients to;
  if (Tape::live()) {
    to = {Tensor::like(x), Tensor({V, W.size(1)}, W.type(), W.device()),
          b ? Tensor::zeros({V}, b.type(), b.device()) : Tensor()};
    if (N == 0) to.dW.fill(0);
  }
  if (x.device() == Device{Cpu{}} && N >= kernel::kWorthHalves)
    loss_in_halves(in, to);
  else
    loss_of(in, 0, N, to);
  Tensor loss = record(total(in.losses), {x, W, b},
                       [=, to_x = x.slot(), to_W = W.slot(), to_b = b.slot()](const Tensor& dy) {
                         scaled_into(to_x, to.dx, dy);
                         scaled_into(to_W, to.dW.window(0, words), dy);
                         if (to_b) scaled_into(to_b, to.db.window(0, words), dy);
                       });
  return {loss, in.likelihood};
}

CrossEntropy output_loss_reference(const Tensor& x, const Tensor& W, const Tensor& b,
                                   const Tensor& labels, double smoothing) {
  return cross_entropy(linear(x, W, b), labels, smoothing);
}

}  // namespace fovea
