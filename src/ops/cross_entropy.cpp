#include "ops/cross_entropy.h"

#include <algorithm>
#include <limits>

#include "gemm/gemm.h"
#include "gemm/gemm_kernel.h"
#include "gemm/split_rows.h"
#include "ops/cross_entropy_kernel.h"
#include "ops/elementwise_kernel.h"
#include "ops/matmul.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

thread_local int64_t most_logits = std::numeric_limits<int64_t>::max();

// The number of rows per chunk. On the CPU, the logits of a chunk should fit in the cache (3 Mi
// numbers). But each chunk reads all weights and updates all their gradients. With a large `width`,
// this costs more than logits outside the cache, so a chunk may have `width` rows, up to 16 Mi
// logits (64 MiB). A GPU needs more rows to be busy: a chunk has up to 128 Mi logits (512 MiB), and
// the rows are divided evenly among the chunks.
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
    gather(logits.slot(), [&](const Tensor& dx, OutputMode fold) {  // dz = dL (softmax − q)
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

// The gradients of the loss, computed together with the loss. They hold for an upstream gradient of
// 1.
struct Gradients {
  Tensor dx, dW, db;
};

struct Output {
  Tensor x, W;  // the bf16 or float tensors that matrix products read
  Tensor b, labels;
  int64_t words;
  double smoothing;
  Tensor losses, likelihood;
};

// Note [Rows of whole packs]
// A GPU product is many times slower if a row does not begin at a multiple of 16 bytes. Rows of
// logits do so only if the number of words is a multiple of 8. So padded() adds words with zero
// weights up to such a multiple. The loss omits these words, and their gradients are discarded.
Tensor padded(const Tensor& x, int64_t rows) {
  if (!x || x.size(0) == rows) return x;
  Shape shape = x.shape();
  shape[0] = rows;
  Tensor y = Tensor::zeros(shape, x.type(), x.device());
  y.window(0, x.size(0)).copy_from(x);
  return y;
}

// Calls launch(on) for the device `on` of x. For double, only the CPU has kernels.
template <class In, class Launch>
void run_on(const Tensor& x, Launch launch) {
  std::visit(
      [&](auto on) {
        if constexpr (std::is_same_v<decltype(on), Cpu> || !std::is_same_v<In, double>)
          launch(on);
        else
          assert(!"double tensors are on the CPU only");
      },
      x.device());
}

// Computes the logits and losses of a chunk of rows. Sets or adds to the gradients of W and b, as
// `fold` says. On a GPU, the logits of bf16 operands are bf16.
template <class In, class On>
void loss_of_rows(On on, const Output& in, int64_t first, int64_t count, const Gradients& to,
                  OutputMode fold) {
  using kernel::Transposition;
  using T = SumType<In>;
  using Logit = std::conditional_t<std::is_same_v<On, Cpu>, T, In>;
  const Tensor x = in.x.window(first, count);
  Tensor logits({count, in.W.size(0)}, type_of<Logit>(), x.device());
  multiply({x, Transposition::as_is, in.W, Transposition::transposed}, logits, in.b,
           OutputMode::set, WeightPacking::always);
  Tensor dz = to.dx ? Tensor(logits.shape(), type_of<In>(), x.device()) : Tensor();
  kernel::cross_entropy_grad<Logit, In>(
      on, {logits.in<Logit>(), in.labels.data<int32_t>() + first, in.smoothing, in.words}, nullptr,
      in.losses.data<T>() + first, in.likelihood.data<T>() + first, dz.out<In>(), OutputMode::set);
  if (!dz) return;
  multiply({dz, Transposition::as_is, in.W, Transposition::as_is}, to.dx.window(first, count), {},
           OutputMode::set, WeightPacking::always);
  multiply({dz, Transposition::transposed, x, Transposition::as_is}, to.dW, {}, fold);
  if (to.db) kernel::column_sums(on, dz.in<In>(), to.db.data<T>(), fold);
}

void loss_of(const Output& in, int64_t first, int64_t count, const Gradients& to) {
  const int64_t step = rows_at_a_time(count, in.W.size(0), in.W.size(1), in.x.device());
  for (int64_t at = first; at < first + count; at += step) {
    const int64_t rows = std::min(step, first + count - at);
    const OutputMode fold = at == first ? OutputMode::set : OutputMode::add;
    const auto compute = [&]<class In>(In) {
      run_on<In>(in.x, [&](auto on) { loss_of_rows<In>(on, in, at, rows, to, fold); });
    };
    if (in.x.type() == ElementType::bf16)
      compute(bf16{});
    else if (in.x.type() == ElementType::f64)
      compute(double{});
    else
      compute(float{});
  }
}

void add_to(const Tensor& y, const Tensor& x) {
  run(y,
      [&]<class T>(auto on, T) { kernel::scale(on, x.in<T>(), 1, y.out<T>(), OutputMode::add); });
}

// Computes the two halves of the rows in parallel, each with its own logits and gradients (Note
// [Halves]).
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

void scaled_into(const std::shared_ptr<GradientSlot>& slot, const Tensor& gradient,
                 const Tensor& dy) {
  gather(slot, [&](const Tensor& out, OutputMode fold) {
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
            padded(as_operand(W), V),
            padded(bias, V),
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
