#include "ops/matmul.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "gemm/gemm.h"
#include "gemm/gemm_kernel.h"
#include "ops/elementwise.h"
#include "ops/shape_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

using kernel::Transposition;

thread_local Precision precision = Precision::f32;

// The bf16 copies of the tensors that hold all parameters of a store in one array. The key of
// `kept` is the address and size of the float tensor. The mutex guards `kept`.
struct OperandCache {
  std::mutex mutex;
  std::map<std::pair<const void*, int64_t>, Tensor> kept;
  std::atomic<uint64_t> version = 0;
};
OperandCache& operands() {
  static OperandCache* const cache = new OperandCache;
  return *cache;
}

Tensor to_bf16(const Tensor& x) {
  Tensor y(x.shape(), ElementType::bf16, x.device());
  std::visit([&](auto on) { kernel::cast(on, x.in<float>(), y.out<bf16>()); }, x.device());
  return y;
}

bool takes_bf16(const Tensor& x) {
  return precision == Precision::bf16 && x.type() == ElementType::f32 &&
         std::visit([](auto on) { return kernel::has_fast_bf16(on); }, x.device());
}

}  // namespace

Tensor as_factor(const Tensor& x, const Tensor& w) { return x.type() == w.type() ? x : to_bf16(x); }

void multiply(const MatmulOperands& in, const Tensor& c, const Tensor& bias, OutputMode fold,
              WeightPacking keep) {
  const bool keep_b = in.b.is_parameter() && (keep == WeightPacking::always || !Tape::live());
  const bool settled = keep_b && in.b.is_settled();
  run_activation(c, [&]<class T>(auto on, T) {
    auto product = [&]<class In>(In) {
      kernel::GemmCall<T, In> p;
      p.a = in.a.in<In>(), p.a_side = in.a_side;
      p.b = in.b.in<In>(), p.b_side = in.b_side;
      p.c = c.out<T>(), p.bias = bias.data<T>(), p.fold = fold, p.keep_b = keep_b;
      p.home = settled ? &in.b.packed() : nullptr;
      kernel::matmul(on, p);
    };
    if constexpr (std::is_same_v<T, float>) {
      if (in.a.type() == ElementType::bf16) return product(bf16{});
    }
    product(T{});
  });
  if (settled) in.b.give_up_values();
}

void multiply_onto(const MatmulOperands& in, const Tensor& from, const Tensor& c) {
  run(c, [&]<class T>(auto on, T) {
    if constexpr (std::is_same_v<decltype(on), Cpu>) {
      const int64_t n = c.cols();
      kernel::copy<T>(on, {from.data<T>(), n, c.data<T>(), n, c.rows(), n, OutputMode::set});
      multiply(in, c, {}, OutputMode::add, WeightPacking::always);
    } else {
      const auto product = [&]<class In>(In) {
        kernel::GemmCall<T, In> p;
        p.a = in.a.in<In>(), p.a_side = in.a_side;
        p.b = in.b.in<In>(), p.b_side = in.b_side;
        p.c = c.out<T>(), p.onto = from.data<T>(), p.fold = OutputMode::add;
        kernel::matmul(on, p);
      };
      in.a.type() == ElementType::bf16 ? product(bf16{}) : product(T{});
    }
  });
}

PrecisionScope::PrecisionScope(Precision wanted) : outer_(precision) { precision = wanted; }
PrecisionScope::~PrecisionScope() { precision = outer_; }
Precision PrecisionScope::current() { return precision; }

bool bf16_activations(Device device) {
  return precision == Precision::bf16 && !std::holds_alternative<Cpu>(device);
}

void round_along(const Tensor& x) {
  if (x && x.type() == ElementType::f32 && bf16_activations(x.device()) && !x.rounded())
    std::visit([&](auto on) { kernel::cast(on, x.in<float>(), x.make_rounded().out<bf16>()); },
               x.device());
}

Tensor as_operand(const Tensor& x) {
  if (!takes_bf16(x)) return x;
  if (const Tensor rounded = x.rounded()) return rounded;
  if (!x.is_parameter()) return to_bf16(x);
  OperandCache& cache = operands();
  const std::lock_guard hold(cache.mutex);
  const Tensor whole = x.whole();
  Tensor& kept = cache.kept[{whole.data<float>(), whole.elements()}];
  if (!kept) kept = to_bf16(whole);
  const int64_t offset = x.data<float>() - whole.data<float>();
  const Tensor part(x.shape(), ElementType::bf16, x.device(), kept.buffer(), offset);
  part.mark_parameter();
  return part;
}

namespace {
template <class... On>
void forget_packed(const std::variant<On...>*) {  // calls forget_packed(on) for each kind of device
  (kernel::forget_packed(On{}), ...);
}
}  // namespace

void parameters_changed() {
  OperandCache& cache = operands();
  const std::lock_guard hold(cache.mutex);
  cache.kept.clear();
  ++cache.version;
  forget_packed(static_cast<const Device*>(nullptr));
}

uint64_t parameters_version() { return operands().version; }

Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b, OutputType give) {
  assert(x.cols() == W.size(1));
  Shape shape = x.shape();
  shape.back() = W.size(0);
  const bool round = give == OutputType::activation && bf16_activations(x.device());
  Tensor y(shape, round ? ElementType::bf16 : W.type(), x.device());
  const bool on_cpu = x.device() == Device{Cpu{}};
  if (precision == Precision::int8 && on_cpu && x.type() == ElementType::f32 && W.is_parameter() &&
      !Tape::live()) {
    kernel::matmul_int8(Cpu{}, x.in<float>(), W.in<float>(), b.data<float>(), y.out<float>());
    return y;
  }
  const Tensor a = as_operand(x), w = as_operand(W);
  multiply({a, Transposition::as_is, w, Transposition::transposed}, y,
           b && round ? as_operand(b) : b, OutputMode::set);
  return record(y, {x, W, b}, [=, dx = x.slot(), db = b.slot()](const Tensor& dy) {
    const Tensor d = as_factor(dy, a);
    gather(dx, [&](const Tensor& out, OutputMode fold) {  // dx = dy W
      multiply({d, Transposition::as_is, w, Transposition::as_is}, out, {}, fold);
    });
    gather_weight_gradient(W, d, a);                      // dW = dyᵀ x
    gather(db, [&](const Tensor& out, OutputMode fold) {  // db = Σ dy
      run_activation(dy, [&]<class T>(auto on, T) {
        kernel::column_sums(on, dy.in<T>(), out.data<SumType<T>>(), fold);
      });
    });
  });
}

// On a GPU without a tape, one kernel computes the product and max(0, ·).
Tensor linear_relu(const Tensor& x, const Tensor& W, const Tensor& b) {
  const bool fused = !Tape::live() && bf16_activations(x.device());
  const Tensor bias = fused ? as_operand(b) : b;
  const auto aligned = [&] {
    constexpr int64_t kPack = 8;
    const auto address = reinterpret_cast<std::uintptr_t>(bias.data<bf16>());
    return W.size(0) % kPack == 0 && address % (kPack * sizeof(bf16)) == 0;
  };
  if (!fused || !aligned()) return apply(Function::relu, linear(x, W, b, OutputType::activation));
  const Tensor a = as_operand(x), w = as_operand(W);
  Shape shape = x.shape();
  shape.back() = W.size(0);
  const Tensor y(shape, ElementType::bf16, x.device());
  std::visit(
      [&](auto on) {
        kernel::GemmCall<bf16, bf16> p;
        p.a = a.in<bf16>(), p.b = w.in<bf16>(), p.b_side = Transposition::transposed;
        p.c = y.out<bf16>(), p.bias = bias.data<bf16>(), p.relu = true;
        if constexpr (!std::is_same_v<decltype(on), Cpu>) kernel::matmul(on, p);
      },
      x.device());
  return y;
}

namespace {

// Note [Late weight gradients]
// A recurrent decoder multiplies the same weights once per word. If each step added its product dᵀ
// x of a few rows, it would read and write the whole gradient of the weights. So the operands of
// one backward pass are collected, up to kManyRows rows, and multiplied together. few_rows() is the
// number of rows from which a product is not deferred. It is higher on a GPU, because a GPU needs
// more rows to be busy.
constexpr int64_t kManyRows = 8192;
int64_t few_rows(Device device) { return std::holds_alternative<Cpu>(device) ? 512 : 1024; }

// The collected operands d and x of the gradient dᵀ x of one weight matrix.
struct PendingProduct {
  std::shared_ptr<GradientSlot> slot, b;
  std::vector<Tensor> d, x;
  int64_t rows = 0;

  void multiply_all() {
    if (rows == 0) return;
    const Tensor all = joined(d);
    slot->gather([&](const Tensor& out, OutputMode fold) {
      multiply({all, Transposition::transposed, joined(x), Transposition::as_is}, out, {}, fold);
    });
    gather_sums(b, all);
    d.clear(), x.clear();
    rows = 0;
  }
  Tensor joined(const std::vector<Tensor>& parts) const {
    if (parts.size() == 1) return parts[0];
    const Tensor all({rows, parts[0].cols()}, parts[0].type(), parts[0].device());
    all.copy_from(parts);
    return all;
  }
};
// The pending products of this thread, by the gradient slot of their weights. The tape owns them.
thread_local std::map<const GradientSlot*, std::weak_ptr<PendingProduct>> pending;

}  // namespace

void gather_sums(const std::shared_ptr<GradientSlot>& b, const Tensor& d) {
  gather(b, [&](const Tensor& out, OutputMode fold) {
    run_activation(d, [&]<class T>(auto on, T) {
      using Sum = SumType<T>;
      const int64_t n = out.elements();
      const Tensor sums({d.cols()}, type_of<Sum>(), d.device());
      kernel::column_sums(on, d.in<T>(), sums.data<Sum>(), OutputMode::set);
      kernel::copy<Sum>(on, {sums.data<Sum>() + d.cols() - n, n, out.data<Sum>(), n, 1, n, fold});
    });
  });
}

void gather_weight_gradient(const Tensor& W, const Tensor& d, const Tensor& x,
                            const std::shared_ptr<GradientSlot>& b) {
  const std::shared_ptr<GradientSlot>& slot = W.slot();
  if (!slot) return gather_sums(b, d);
  if (!W.is_parameter() || d.rows() >= few_rows(d.device())) {
    slot->gather([&](const Tensor& out, OutputMode fold) {
      multiply({d, Transposition::transposed, x, Transposition::as_is}, out, {}, fold);
    });
    return gather_sums(b, d);
  }
  std::shared_ptr<PendingProduct> product = pending[slot.get()].lock();
  if (!product) {
    product = std::make_shared<PendingProduct>(PendingProduct{slot, b, {}, {}, 0});
    pending[slot.get()] = product;
    Tape::at_the_end([product] { product->multiply_all(); });
  }
  product->d.push_back(d);
  product->x.push_back(x);
  product->rows += d.rows();
  if (product->rows >= kManyRows) product->multiply_all();
}

namespace {

// Matrix i of a batch of matrices x [.., n, m].
Tensor slice(const Tensor& x, int64_t i) {
  const int64_t n = x.size(-2), m = x.size(-1);
  return x.view({x.elements() / (n * m), n, m}).window(i, 1).view({n, m});
}
int64_t batch(const Tensor& x) { return x.elements() / (x.size(-2) * x.size(-1)); }

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  const int64_t shared = batch(b) == 1 ? 0 : 1;
  assert(b.size(-2) == a.size(-1) && (!shared || batch(a) == batch(b)));
  Shape shape = a.shape();
  shape.back() = b.size(-1);
  Tensor y(shape, a.type(), a.device());
  for (int64_t i = 0; i < batch(a); ++i)
    multiply({slice(a, i), Transposition::as_is, slice(b, i * shared), Transposition::as_is},
             slice(y, i), {}, OutputMode::set);
  return record(y, {a, b}, [=, da = a.slot(), db = b.slot()](const Tensor& dy) {
    gather(da, [&](const Tensor& out, OutputMode fold) {  // da = dy bᵀ
      for (int64_t i = 0; i < batch(a); ++i)
        multiply(
            {slice(dy, i), Transposition::as_is, slice(b, i * shared), Transposition::transposed},
            slice(out, i), {}, fold);
    });
    gather(db, [&](const Tensor& out, OutputMode fold) {  // db = aᵀ dy
      for (int64_t i = 0; i < batch(a); ++i)
        multiply({slice(a, i), Transposition::transposed, slice(dy, i), Transposition::as_is},
                 slice(out, i * shared), {}, !shared && i > 0 ? OutputMode::add : fold);
    });
  });
}

Tensor transpose(const Tensor& x) {
  const int64_t n = x.size(-2), m = x.size(-1);
  auto swap = [](const Tensor& from, const Tensor& to, OutputMode fold) {
    run(from, [&]<class T>(auto on, T) {
      for (int64_t s = 0; s < batch(from); ++s)
        kernel::transpose(on, slice(from, s).in<T>(), slice(to, s).out<T>(), fold);
    });
  };
  Shape shape = x.shape();
  shape[shape.size() - 2] = m;
  shape.back() = n;
  Tensor y(shape, x.type(), x.device());
  swap(x, y, OutputMode::set);
  return record(y, {x}, [=, dx = x.slot()](const Tensor& dy) {
    gather(dx, [&](const Tensor& out, OutputMode fold) { swap(dy, out, fold); });
  });
}

}  // namespace fovea
