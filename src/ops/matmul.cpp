#include "ops/matmul.h"

#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "ops/elementwise.h"
#include "ops/matmul_kernel.h"
#include "ops/product.h"
#include "ops/shape_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

using kernel::Side;

thread_local Precision precision = Precision::f32;

// bf16 copies of the flat tensors that parameters are parts of, by address and size.
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
  Tensor y(x.shape(), Type::bf16, x.device());
  std::visit([&](auto on) { kernel::cast(on, x.in<float>(), y.out<bf16>()); }, x.device());
  return y;
}

bool takes_bf16(const Tensor& x) {
  return precision == Precision::bf16 && x.type() == Type::f32 &&
         std::visit([](auto on) { return kernel::has_fast_bf16(on); }, x.device());
}

}  // namespace

Tensor as_factor(const Tensor& x, const Tensor& w) { return x.type() == w.type() ? x : to_bf16(x); }

void multiply(const Factors& in, const Tensor& c, const Tensor& bias, Fold fold, Keep keep) {
  const bool keep_b = in.b.is_parameter() && (keep == Keep::always || !Tape::live());
  const bool settled = keep_b && in.b.is_settled();
  run_activation(c, [&]<class T>(auto on, T) {
    auto product = [&]<class In>(In) {
      kernel::Product<T, In> p;
      p.a = in.a.in<In>(), p.a_side = in.a_side;
      p.b = in.b.in<In>(), p.b_side = in.b_side;
      p.c = c.out<T>(), p.bias = bias.data<T>(), p.fold = fold, p.keep_b = keep_b;
      p.home = settled ? &in.b.packed() : nullptr;
      kernel::matmul(on, p);
    };
    if constexpr (std::is_same_v<T, float>) {
      if (in.a.type() == Type::bf16) return product(bf16{});
    }
    product(T{});
  });
  if (settled) in.b.give_up_values();
}

void multiply_onto(const Factors& in, const Tensor& from, const Tensor& c) {
  run(c, [&]<class T>(auto on, T) {
    if constexpr (std::is_same_v<decltype(on), Cpu>) {
      const int64_t n = c.cols();
      kernel::copy<T>(on, {from.data<T>(), n, c.data<T>(), n, c.rows(), n, Fold::set});
      multiply(in, c, {}, Fold::add, Keep::always);
    } else {
      const auto product = [&]<class In>(In) {
        kernel::Product<T, In> p;
        p.a = in.a.in<In>(), p.a_side = in.a_side;
        p.b = in.b.in<In>(), p.b_side = in.b_side;
        p.c = c.out<T>(), p.onto = from.data<T>(), p.fold = Fold::add;
        kernel::matmul(on, p);
      };
      in.a.type() == Type::bf16 ? product(bf16{}) : product(T{});
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
  if (x && x.type() == Type::f32 && bf16_activations(x.device()) && !x.rounded())
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
  const Tensor part(x.shape(), Type::bf16, x.device(), kept.buffer(), offset);
  part.mark_parameter();
  return part;
}

namespace {
template <class... On>
void forget_packed(const std::variant<On...>*) {  // on every kind of device there is
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

Tensor linear(const Tensor& x, const Tensor& W, const Tensor& b, Give give) {
  assert(x.cols() == W.size(1));
  Shape shape = x.shape();
  shape.back() = W.size(0);
  const bool round = give == Give::activation && bf16_activations(x.device());
  Tensor y(shape, round ? Type::bf16 : W.type(), x.device());
  const bool on_cpu = x.device() == Device{Cpu{}};
  if (precision == Precision::int8 && on_cpu && x.type() == Type::f32 && W.is_parameter() &&
      !Tape::live()) {
    kernel::matmul_int8(Cpu{}, x.in<float>(), W.in<float>(), b.data<float>(), y.out<float>());
    return y;
  }
  const Tensor a = as_operand(x), w = as_operand(W);
  multiply({a, Side::as_is, w, Side::transposed}, y, b && round ? as_operand(b) : b, Fold::set);
  return record(y, {x, W, b}, [=, dx = x.slot(), db = b.slot()](const Tensor& dy) {
    const Tensor d = as_factor(dy, a);
    gather(dx, [&](const Tensor& out, Fold fold) {  // dx = dy W
      multiply({d, Side::as_is, w, Side::as_is}, out, {}, fold);
    });
    gather_weight_gradient(W, d, a);                // dW = dyᵀ x
    gather(db, [&](const Tensor& out, Fold fold) {  // db = Σ dy
      run_activation(dy, [&]<class T>(auto on, T) {
        kernel::column_sums(on, dy.in<T>(), out.data<Wide<T>>(), fold);
      });
    });
  });
}

// A GPU does both at once where nothing must be kept for a gradient.
Tensor linear_relu(const Tensor& x, const Tensor& W, const Tensor& b) {
  const bool together = !Tape::live() && bf16_activations(x.device());
  const Tensor bias = together ? as_operand(b) : b;
  const auto in_packs = [&] {
    constexpr int64_t kPack = 8;
    const auto place = reinterpret_cast<std::uintptr_t>(bias.data<bf16>());
    return W.size(0) % kPack == 0 && place % (kPack * sizeof(bf16)) == 0;
  };
  if (!together || !in_packs()) return apply(Function::relu, linear(x, W, b, Give::activation));
  const Tensor a = as_operand(x), w = as_operand(W);
  Shape shape = x.shape();
  shape.back() = W.size(0);
  const Tensor y(shape, Type::bf16, x.device());
  std::visit(
      [&](auto on) {
        kernel::Product<bf16, bf16> p;
        p.a = a.in<bf16>(), p.b = w.in<bf16>(), p.b_side = Side::transposed;
        p.c = y.out<bf16>(), p.bias = bias.data<bf16>(), p.relu = true;
        if constexpr (!std::is_same_v<decltype(on), Cpu>) kernel::matmul(on, p);
      },
      x.device());
  return y;
}

namespace {

// Note [Late weight gradients]
// A recurrent decoder multiplies the same weights once per word. Each product dᵀ x of a few rows
// would read and write the whole gradient of the weights; so the factors wait, and what one
// backward pass has gathered of them is multiplied at once. A GPU is busy with more rows only.
constexpr int64_t kManyRows = 8192;
int64_t few_rows(Device device) { return std::holds_alternative<Cpu>(device) ? 512 : 1024; }

struct Waiting {
  std::shared_ptr<Slot> slot, b;
  std::vector<Tensor> d, x;
  int64_t rows = 0;

  void multiply_all() {
    if (rows == 0) return;
    const Tensor all = joined(d);
    slot->gather([&](const Tensor& out, Fold fold) {
      multiply({all, Side::transposed, joined(x), Side::as_is}, out, {}, fold);
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
// Those that wait on this thread; the tape owns them.
thread_local std::map<const Slot*, std::weak_ptr<Waiting>> waiting;

}  // namespace

void gather_sums(const std::shared_ptr<Slot>& b, const Tensor& d) {
  gather(b, [&](const Tensor& out, Fold fold) {
    run_activation(d, [&]<class T>(auto on, T) {
      using Sum = Wide<T>;
      const int64_t n = out.elements();
      const Tensor sums({d.cols()}, type_of<Sum>(), d.device());
      kernel::column_sums(on, d.in<T>(), sums.data<Sum>(), Fold::set);
      kernel::copy<Sum>(on, {sums.data<Sum>() + d.cols() - n, n, out.data<Sum>(), n, 1, n, fold});
    });
  });
}

void gather_weight_gradient(const Tensor& W, const Tensor& d, const Tensor& x,
                            const std::shared_ptr<Slot>& b) {
  const std::shared_ptr<Slot>& slot = W.slot();
  if (!slot) return gather_sums(b, d);
  if (!W.is_parameter() || d.rows() >= few_rows(d.device())) {
    slot->gather([&](const Tensor& out, Fold fold) {
      multiply({d, Side::transposed, x, Side::as_is}, out, {}, fold);
    });
    return gather_sums(b, d);
  }
  std::shared_ptr<Waiting> here = waiting[slot.get()].lock();
  if (!here) {
    here = std::make_shared<Waiting>(Waiting{slot, b, {}, {}, 0});
    waiting[slot.get()] = here;
    Tape::at_the_end([here] { here->multiply_all(); });
  }
  here->d.push_back(d);
  here->x.push_back(x);
  here->rows += d.rows();
  if (here->rows >= kManyRows) here->multiply_all();
}

namespace {

// The i-th matrix of a batch of matrices [.., n, m].
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
    multiply({slice(a, i), Side::as_is, slice(b, i * shared), Side::as_is}, slice(y, i), {},
             Fold::set);
  return record(y, {a, b}, [=, da = a.slot(), db = b.slot()](const Tensor& dy) {
    gather(da, [&](const Tensor& out, Fold fold) {  // da = dy bᵀ
      for (int64_t i = 0; i < batch(a); ++i)
        multiply({slice(dy, i), Side::as_is, slice(b, i * shared), Side::transposed}, slice(out, i),
                 {}, fold);
    });
    gather(db, [&](const Tensor& out, Fold fold) {  // db = aᵀ dy
      for (int64_t i = 0; i < batch(a); ++i)
        multiply({slice(a, i), Side::transposed, slice(dy, i), Side::as_is}, slice(out, i * shared),
                 {}, !shared && i > 0 ? Fold::add : fold);
    });
  });
}

Tensor transpose(const Tensor& x) {
  const int64_t n = x.size(-2), m = x.size(-1);
  auto swap = [](const Tensor& from, const Tensor& to, Fold fold) {
    run(from, [&]<class T>(auto on, T) {
      for (int64_t s = 0; s < batch(from); ++s)
        kernel::transpose(on, slice(from, s).in<T>(), slice(to, s).out<T>(), fold);
    });
  };
  Shape shape = x.shape();
  shape[shape.size() - 2] = m;
  shape.back() = n;
  Tensor y(shape, x.type(), x.device());
  swap(x, y, Fold::set);
  return record(y, {x}, [=, dx = x.slot()](const Tensor& dy) {
    gather(dx, [&](const Tensor& out, Fold fold) { swap(dy, out, fold); });
  });
}

}  // namespace fovea
