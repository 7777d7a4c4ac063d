#include "ops/recurrent.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "ops/elementwise.h"
#include "ops/embedding.h"
#include "ops/matmul.h"
#include "ops/recurrent_kernel.h"
#include "ops/recurrent_linear.h"
#include "ops/shape.h"
#include "ops/shape_kernel.h"
#include "tensor/tape.h"

namespace fovea {

TimeMajor TimeMajor::of(std::span<const int32_t> offsets, Device device) {
  TimeMajor rows;
  auto length = [&](int32_t sentence) { return offsets[sentence + 1] - offsets[sentence]; };
  rows.order.resize(offsets.size() - 1);
  std::iota(rows.order.begin(), rows.order.end(), 0);
  std::ranges::stable_sort(rows.order, std::greater<>(), length);
  assert(rows.order.empty() || length(rows.order.back()) > 0);

  std::vector<int32_t> from, to(static_cast<size_t>(offsets.back())), ends(rows.order.size());
  rows.first = {0};
  size_t alive = rows.order.size();
  for (int32_t t = 0; from.size() < to.size(); ++t) {
    while (length(rows.order[alive - 1]) <= t) --alive;
    for (size_t i = 0; i < alive; ++i) {
      const int32_t here = static_cast<int32_t>(from.size()), there = offsets[rows.order[i]] + t;
      from.push_back(there);
      to[static_cast<size_t>(there)] = here;
      ends[i] = here;
    }
    rows.first.push_back(static_cast<int64_t>(from.size()));
  }
  rows.from = Tensor::of(from, device);
  rows.to = Tensor::of(to, device);
  rows.ends = Tensor::of(ends, device);
  rows.words = std::move(from);
  return rows;
}

TimeMajor TimeMajor::filled(std::span<const int32_t> offsets, std::span<const int32_t> lengths,
                            Device device) {
  TimeMajor rows = of(offsets, device);
  std::vector<int32_t> ends, turned(rows.words.size());
  const auto row = [&](int64_t t, int64_t place) {
    return static_cast<int32_t>(rows.first[static_cast<size_t>(t)] + place);
  };
  for (const int32_t b : rows.order)
    ends.push_back(row(lengths[static_cast<size_t>(b)] - 1, std::ssize(ends)));
  for (int64_t t = 0; t < rows.times(); ++t)
    for (int64_t i = 0; i < rows.alive(t); ++i) {
      const int64_t own = lengths[static_cast<size_t>(rows.order[static_cast<size_t>(i)])];
      turned[static_cast<size_t>(row(t, i))] = row(t < own ? own - 1 - t : t, i);
    }
  rows.ends = Tensor::of(ends, device);
  rows.turned = Tensor::of(turned, device);
  return rows;
}

Tensor rows_at(const Tensor& x, const Tensor& index) { return embed(x, {}, {index, {}, 1, {}}); }

Tensor permuted_rows(const Tensor& x, const Tensor& index) {
  const auto turn = [index](const Tensor& from) {
    return embed(from.view(from.shape()), {}, {index, {}, 1, {}});
  };
  return record(turn(x), {x}, [turn, index, slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) {
      if (fold == OutputMode::set) return copy_rows(dy, index, dx);
      run(dx, [&]<class T>(auto on, T) { kernel::add_rows(on, turn(dy).in<T>(), dx.out<T>()); });
    });
  });
}

namespace {

using kernel::Transposition;

// If a matrix product has a new size, its first call takes long to prepare. So the number of rows
// is rounded up to a multiple of kRowMultiple, which gives few sizes. The contents of the
// additional rows do not matter.
constexpr int64_t kRowMultiple = 8;
int64_t rounded(int64_t n) { return (n + kRowMultiple - 1) / kRowMultiple * kRowMultiple; }

struct Rows {
  int64_t first, count;
};
Tensor part(const Tensor& x, Rows at) { return x ? x.window(at.first, at.count) : x; }

// The rows of each time step in the order of TimeMajor, and the direction of the steps.
struct Times {
  std::vector<int64_t> first;
  Direction direction;

  int64_t count() const { return static_cast<int64_t>(first.size()) - 1; }
  int64_t tokens() const { return first.back(); }
  int64_t sentences() const { return count() > 0 ? first[1] : 0; }
  Rows step(int64_t k) const {  // if k is before the first step, an empty range of rows
    if (k < 0) return {0, 0};
    const int64_t t = direction == Direction::forward ? k : count() - 1 - k;
    return {first[t], first[t + 1] - first[t]};
  }
};

// The data of the forward pass over a sequence that the gradient needs.
struct Sequence {
  Cell cell;
  std::vector<Tensor> weights;  // bf16 or float operands of products: U; for gru [U_r; U_z] and U_n
  Tensor start, y, kept;
  Times times;

  int64_t H() const { return weights.front().cols(); }
  bool one_step() const { return times.count() == 1; }
};

std::vector<Tensor> weights_of(const RecurrentWeights& cell) {
  const Tensor w = as_operand(cell.U);
  if (cell.cell != Cell::gru) return {w};
  const int64_t H = w.cols();
  const std::vector<Tensor> parts = {w.window(0, 2 * H), w.window(2 * H, H)};
  for (const Tensor& p : parts)
    if (w.is_parameter()) p.mark_parameter();
  return parts;
}

// u = w h for the first n rows of h. u and h have at least rounded(n) rows. h_rounded is a bf16
// copy of h, or absent.
void product(const Tensor& w, const Tensor& h, const Tensor& h_rounded, int64_t n,
             const Tensor& u) {
  const int64_t m = rounded(n);
  const Tensor factor = h_rounded ? h_rounded.window(0, m) : as_factor(h.window(0, m), w);
  multiply({factor, Transposition::as_is, w, Transposition::transposed}, u.window(0, m), {},
           OutputMode::set, WeightPacking::always);
}

// The states h in bf16, for products on a GPU. A step reads the row range of `before` and writes
// `after`.
struct RoundedStates {
  Tensor before, after;

  RoundedStates(const Sequence& s, const Tensor& h) {
    if (!bf16_activations(h.device())) return;
    const bool with_y = s.one_step() && s.y.cols() == s.H();  // the next step reads h from y
    const Tensor known = with_y ? s.start.rounded() : Tensor();
    before = known && known.rows() >= h.rows() ? known : as_factor(h, s.weights[0]);
    after = with_y ? s.y.make_rounded() : before;
  }
};

void run_forward(const Sequence& s, const Tensor& x, const Tensor& b_n) {
  const int64_t H = s.H(), sentences = s.times.sentences(), width = kernel::kept_columns(s.cell, H);
  auto scratch = [&](int64_t cols) {
    const Tensor buffer({rounded(sentences), cols}, x.type(), x.device());
    buffer.window(sentences, buffer.rows() - sentences).fill(0);
    return buffer;
  };
  const Tensor h = scratch(H), c = s.cell == Cell::lstm ? scratch(H) : Tensor(),
               reset = s.cell == Cell::gru ? scratch(H) : Tensor(),
               discarded = !s.kept && width > 0 ? scratch(width) : Tensor();
  std::vector<Tensor> u;
  for (const Tensor& w : s.weights) u.push_back(scratch(w.size(0)));
  copy_columns(s.start.window(0, sentences), 0, h.window(0, sentences));
  if (c) copy_columns(s.start.window(0, sentences), H, c.window(0, sentences));
  const RoundedStates rounded_h(s, h);

  for (int64_t k = 0; k < s.times.count(); ++k) {
    const Rows at = s.times.step(k);
    product(s.weights[0], h, rounded_h.before, at.count, u[0]);
    run(x, [&]<class T>(auto on, T) {
      kernel::RecurrentStep<T> step{part(x, at).in<T>(),
                                    u[0].in<T>(),
                                    b_n.data<T>(),
                                    h.out<T>(),
                                    c.out<T>(),
                                    part(s.y, at).out<T>(),
                                    (s.kept ? part(s.kept, at) : discarded).out<T>(),
                                    rounded_h.after.out<bf16>()};
      switch (s.cell) {
        case Cell::rnn:
          return kernel::rnn_step(on, step);
        case Cell::lstm:
          return kernel::lstm_step(on, step);
        case Cell::gru_after:
          return kernel::gru_after_step(on, step);
        case Cell::gru:
          kernel::gru_reset(on, step, reset.out<T>());
          product(s.weights[1], reset, {}, at.count, u[1]);
          step.u = u[1].template in<T>();
          return kernel::gru_step(on, step);
      }
    });
  }
}

bool on_gpu(const Tensor& x) { return !std::holds_alternative<Cpu>(x.device()); }

// The backward pass of one recurrent product, for all time steps.
struct RecurrentProduct {
  Tensor w;        // the rows of U that this product multiplies
  Tensor d;        // gradient of the product, [at least tokens, rows of w]
  Tensor operand;  // d as an operand of products; d itself if d is bf16
  Tensor from;     // [tokens, H]: the matrix that the forward pass multiplied by w

  void backpropagate(Rows at, const Tensor& back,
                     OutputMode fold = OutputMode::set) const {  // back = wᵀ d
    if (operand.type() != d.type())
      std::visit(
          [&](auto on) {
            kernel::cast(on, part(d, at).in<float>(), part(operand, at).out<bf16>());
          },
          d.device());
    const int64_t most = std::min(rounded(at.count), operand.size(0) - at.first);
    const int64_t m = fold == OutputMode::set ? most : at.count;
    multiply({operand.window(at.first, m), Transposition::as_is, w, Transposition::as_is},
             back.window(0, m), {}, fold, WeightPacking::always);
  }
};

struct Gradient {
  std::vector<RecurrentProduct> products;
  Tensor dh, dc;  // gradients of the start states
};

// Whether the cell uses x and U h only as their sum, so that x and U h have the same gradient.
bool shares_gradient(const Sequence& s) { return s.cell == Cell::rnn || s.cell == Cell::lstm; }

Gradient empty_gradient(const Sequence& s, const Tensor& dx) {
  const int64_t tokens = s.times.tokens(), most = rounded(s.times.sentences());
  Gradient g;
  for (const Tensor& w : s.weights) {
    auto fresh = [&](ElementType type) {
      return Tensor({tokens + kRowMultiple, w.size(0)}, type, dx.device());
    };
    const bool direct = on_gpu(dx) && w.type() == ElementType::bf16;
    const Tensor d = direct ? fresh(ElementType::bf16) : shares_gradient(s) ? dx : fresh(dx.type());
    g.products.push_back({w, d, w.type() == d.type() ? d : fresh(w.type()),
                          Tensor({tokens, s.H()}, direct ? w.type() : dx.type(), dx.device())});
  }
  g.dh = Tensor::zeros({most, s.H()}, dx.type(), dx.device());
  if (s.cell == Cell::lstm) g.dc = Tensor::zeros({most, s.H()}, dx.type(), dx.device());
  return g;
}

// The backward pass of a Sequence. run_backward() calls step() for each time step, the last one
// first.
struct BackwardPass {
  const Sequence& s;
  Tensor dy, dx;
  Gradient g;
  Tensor back;

  // Computes the gradients of time step k. U is the type of the operands of products.
  template <class T, class U, class On>
  void step(On on, int64_t k) const {
    const Rows at = s.times.step(k), last = s.times.step(k - 1);
    const Tensor before = part(s.y, {last.first, std::min(last.count, at.count)});
    auto with = [&](const RecurrentProduct& p) {
      return kernel::RecurrentStepGrad<T, U>{part(s.y, at).template in<T>(),
                                             part(s.kept, at).template in<T>(),
                                             part(dy, at).template in<T>(),
                                             {before.in<T>(), s.start.in<T>()},
                                             g.dh.out<T>(),
                                             g.dc.out<T>(),
                                             part(dx, at).template out<T>(),
                                             part(p.d, at).template out<U>(),
                                             part(p.from, at).template out<U>()};
    };
    const RecurrentProduct& of_h = g.products.front();
    if (s.cell == Cell::rnn) kernel::rnn_step_grad(on, with(of_h));
    if (s.cell == Cell::lstm) kernel::lstm_step_grad(on, with(of_h));
    if (s.cell == Cell::gru_after) kernel::gru_after_step_grad(on, with(of_h));
    if (s.cell == Cell::gru) {
      kernel::gru_step_grad(on, with(g.products[1]));
      g.products[1].backpropagate(at, back);
      kernel::gru_reset_grad(on, with(of_h), back.in<T>());
    }
    if (on_gpu(dx)) return of_h.backpropagate(at, g.dh, OutputMode::add);
    of_h.backpropagate(at, back);
    kernel::add_rows(on, part(back, {0, at.count}).template in<T>(), g.dh.out<T>());
  }
};

Gradient run_backward(const Sequence& s, const Tensor& dy, const Tensor& dx) {
  const BackwardPass pass{s, dy, dx, empty_gradient(s, dx),
                          Tensor({rounded(s.times.sentences()), s.H()}, dx.type(), dx.device())};
  const bool bf16_factors = pass.g.products.front().from.type() == ElementType::bf16;
  run(dy, [&]<class T>(auto on, T) {
    for (int64_t k = s.times.count() - 1; k >= 0; --k) {
      if constexpr (!std::is_same_v<decltype(on), Cpu>)
        if (bf16_factors) {
          pass.step<T, bf16>(on, k);
          continue;
        }
      pass.step<T, T>(on, k);
    }
  });
  return pass.g;
}

// The two blocks [U_r; U_z] and U_n of a gru's U, as parameters. All steps of one backward pass
// share them.
std::vector<Tensor> halves(const Tensor& U) {
  thread_local std::map<const GradientSlot*, std::weak_ptr<std::vector<Tensor>>> known;
  std::shared_ptr<std::vector<Tensor>> parts = known[U.slot().get()].lock();
  if (!parts) {
    const int64_t H = U.cols();
    parts = std::make_shared<std::vector<Tensor>>();
    for (const Rows at : {Rows{0, 2 * H}, Rows{2 * H, H}}) {
      parts->push_back(part(U, at));
      parts->back().bind_gradient(part(U.grad(), at));
    }
    known[U.slot().get()] = parts;
    Tape::at_the_end([parts] {});  // keeps `parts` alive until the end of the backward pass
  }
  return *parts;
}

// dU = Σ d hᵀ and db_n = Σ d. After a sequence, both are computed at once for all time steps. After
// a single step, they are deferred to the end of the backward pass.
void gather_recurrent(const Tensor& U, const std::shared_ptr<GradientSlot>& b_n, const Sequence& s,
                      const std::vector<RecurrentProduct>& products) {
  const int64_t tokens = s.times.tokens();
  const bool deferred = s.one_step() && U.is_parameter() && U.slot(),
             deferred_b = deferred && on_gpu(s.y);
  if (!deferred_b) gather_sums(b_n, products[0].d.window(0, tokens));
  if (deferred) {
    const std::vector<Tensor> parts = products.size() == 1 ? std::vector{U} : halves(U);
    for (size_t i = 0; i < products.size(); ++i) {
      const RecurrentProduct& p = products[i];
      gather_weight_gradient(parts[i], p.operand.window(0, tokens), as_factor(p.from, p.w),
                             deferred_b ? b_n : nullptr);
    }
    return;
  }
  gather(U.slot(), [&](const Tensor& dU, OutputMode fold) {
    int64_t row = 0;
    for (const RecurrentProduct& p : products) {
      multiply({p.operand.window(0, tokens), Transposition::transposed, as_factor(p.from, p.w),
                Transposition::as_is},
               dU.window(row, p.w.size(0)), {}, fold);
      row += p.w.size(0);
    }
  });
}

// The gradient slots of the inputs, to which the backward pass adds gradients.
struct Slots {
  std::shared_ptr<GradientSlot> x, start, b_n;
};

void backward(const Sequence& s, const Slots& to, const Tensor& U, const Tensor& dy) {
  const int64_t H = s.H(), tokens = s.times.tokens(), sentences = s.times.sentences();
  Gradient g;
  auto to_x = [&](const Tensor& dx, OutputMode fold) {
    // The deferred product reads the step's gradient d at the end of the backward pass. If d is dx,
    // other gradients may have been added to it by then. So the step needs its own copy.
    const bool reads_dx = shares_gradient(s) && s.weights[0].type() == dx.type();
    const bool own = fold == OutputMode::add || (s.one_step() && reads_dx);
    const Tensor alone = own ? Tensor::like(dx) : dx;
    g = run_backward(s, dy, alone);
    if (fold == OutputMode::add)
      run(dx, [&]<class T>(auto on, T) { kernel::add_rows(on, alone.in<T>(), dx.out<T>()); });
    else if (own)
      dx.copy_from(alone);
  };
  if (to.x)
    to.x->gather(to_x);
  else
    to_x(Tensor({tokens, gates(s.cell) * H}, dy.type(), dy.device()), OutputMode::set);

  gather_recurrent(U, to.b_n, s, g.products);
  gather(to.start, [&](const Tensor& dstart, OutputMode fold) {
    const int64_t width = dstart.cols();
    if (fold == OutputMode::set) dstart.window(sentences, dstart.rows() - sentences).fill(0);
    run(dy, [&]<class T>(auto on, T) {
      T* out = dstart.data<T>();
      kernel::copy<T>(on, {g.dh.data<T>(), H, out, width, sentences, H, fold});
      if (g.dc) kernel::copy<T>(on, {g.dc.data<T>(), H, out + H, width, sentences, H, fold});
    });
  });
}

Tensor unroll(const RecurrentWeights& cell, const Tensor& x, const Tensor& start, Times times) {
  const int64_t H = cell.U.size(1), width = kernel::kept_columns(cell.cell, H);
  assert(x.rows() == times.tokens() && x.cols() == gates(cell.cell) * H);
  assert(start.rows() >= times.sentences() && start.cols() == state_width(cell.cell, H));
  assert((cell.cell == Cell::gru_after) == static_cast<bool>(cell.b_n));
  Sequence s{cell.cell, weights_of(cell),
             start,     Tensor({x.rows(), start.cols()}, x.type(), x.device()),
             {},        std::move(times)};
  if (Tape::live() && width > 0) s.kept = Tensor({x.rows(), width}, x.type(), x.device());
  run_forward(s, x, cell.b_n);
  const Slots to{x.slot(), start.slot(), cell.b_n.slot()};
  return record(s.y, {x, start, cell.U, cell.b_n},
                [s, to, U = cell.U](const Tensor& dy) { backward(s, to, U, dy); });
}

Tensor or_zeros(const Tensor& start, const RecurrentWeights& cell, const Tensor& x,
                int64_t sentences) {
  if (start) return start;
  return Tensor::zeros({sentences, state_width(cell.cell, cell.U.size(1))}, x.type(), x.device());
}

}  // namespace

Tensor recurrent(const RecurrentWeights& cell, const Tensor& x, const Tensor& start,
                 const TimeMajor& rows, Direction direction) {
  return unroll(cell, x, or_zeros(start, cell, x, rows.sentences()), {rows.first, direction});
}

Tensor recurrent_step(const RecurrentWeights& cell, const Tensor& x, const Tensor& before) {
  return unroll(cell, x, before, {{0, x.rows()}, Direction::forward});
}

namespace {

Tensor step_reference(const RecurrentWeights& cell, const Tensor& x, const Tensor& before) {
  const int64_t H = cell.U.size(1);
  auto gate = [&](const Tensor& of, int64_t k) { return columns(of, k * H, H); };
  const Tensor h = gate(before, 0);
  if (cell.cell == Cell::rnn) return tanh(x + linear(h, cell.U));
  if (cell.cell == Cell::lstm) {
    const Tensor a = x + linear(h, cell.U);
    const Tensor i = sigmoid(gate(a, 0)), f = sigmoid(gate(a, 1)), g = tanh(gate(a, 2)),
                 o = sigmoid(gate(a, 3));
    const Tensor c = f * gate(before, 1) + i * g;
    return concat_columns({o * tanh(c), c});
  }
  const Tensor u = linear(h, rows(cell.U, 0, 2 * H)), U_n = rows(cell.U, 2 * H, H);
  const Tensor r = sigmoid(gate(x, 0) + gate(u, 0)), z = sigmoid(gate(x, 1) + gate(u, 1));
  const Tensor v = cell.cell == Cell::gru ? linear(r * h, U_n) : r * (linear(h, U_n) + cell.b_n);
  const Tensor n = tanh(gate(x, 2) + v);
  return n + z * (h + n * -1.0);  // (1 − z) ∘ n + z ∘ h
}

}  // namespace

Tensor recurrent_reference(const RecurrentWeights& cell, const Tensor& x, const Tensor& start,
                           const TimeMajor& rows, Direction direction) {
  const Tensor first = or_zeros(start, cell, x, rows.sentences());
  std::vector<Tensor> states(static_cast<size_t>(rows.times()));
  for (int64_t k = 0; k < rows.times(); ++k) {
    const bool forward = direction == Direction::forward;
    const int64_t t = forward ? k : rows.times() - 1 - k, n = rows.alive(t);
    Tensor before = fovea::rows(first, 0, n);
    if (k > 0 && forward) before = fovea::rows(states[t - 1], 0, n);
    if (k > 0 && !forward) {
      // The words are read backward, so a sentence whose last word is at time t begins here.
      const int64_t going = rows.alive(t + 1);
      before = concat_rows({states[t + 1], fovea::rows(first, going, n - going)});
    }
    states[t] = step_reference(cell, fovea::rows(x, rows.first[t], n), before);
  }
  return concat_rows(states);
}

}  // namespace fovea
