#include "ops/attention_window.h"

#include "ops/attention_window_kernel.h"
#include "ops/shape_kernel.h"
#include "tensor/tape.h"

namespace fovea {
namespace {

Tensor columns_for(int64_t rows, Device device) { return {{rows}, ElementType::i32, device}; }

ColumnRanges ranges_for(int64_t rows, Device device) {
  return {columns_for(rows, device), columns_for(rows, device)};
}
kernel::RangesIn in(const ColumnRanges& r) {
  return {r.low.data<int32_t>(), r.high.data<int32_t>()};
}
kernel::RangesOut out(const ColumnRanges& r) {
  return {r.low.data<int32_t>(), r.high.data<int32_t>()};
}

// Sets dx = dy or adds dy to dx, as `fold` says.
void pass(const Tensor& dy, const Tensor& dx, OutputMode fold) {
  run(dy, [&]<class T>(auto on, T) {
    kernel::copy<T>(on,
                    {dy.data<T>(), dy.cols(), dx.data<T>(), dx.cols(), dy.rows(), dy.cols(), fold});
  });
}

}  // namespace

ColumnRanges full_range(const RaggedQueries& ragged, int64_t reach) {
  const Device device = ragged.sentence.device();
  const ColumnRanges r = ranges_for(ragged.queries(), device);
  const kernel::RaggedIndex index{ragged.memory.offsets.data<int32_t>(),
                                  ragged.sentence.data<int32_t>(), ragged.memory.sentences,
                                  ragged.queries()};
  std::visit([&](auto on) { kernel::full_range(on, index, reach, out(r)); }, device);
  return r;
}

ColumnRanges window_around(const Tensor& p, int64_t D, const ColumnRanges& within) {
  ColumnRanges r = ranges_for(p.rows(), p.device());
  run(p, [&]<class T>(auto on, T) { kernel::window_around(on, p.in<T>(), D, in(within), out(r)); });
  return r;
}

ColumnRanges range_from(const Tensor& from, int64_t slack, const ColumnRanges& within) {
  ColumnRanges r = ranges_for(from.elements(), from.device());
  std::visit(
      [&](auto on) {
        kernel::range_from(on, from.data<int32_t>(), from.elements(), slack, in(within), out(r));
      },
      from.device());
  return r;
}

Tensor argmax(const Tensor& x, const ColumnRanges& ranges) {
  Tensor at = columns_for(x.rows(), x.device());
  run(x,
      [&]<class T>(auto on, T) { kernel::argmax(on, x.in<T>(), in(ranges), at.data<int32_t>()); });
  return at;
}

// The key of a Dropout serves as the seed. So the sampled column depends only on p, the key and the
// row.
Tensor draw(const Tensor& p, const ColumnRanges& ranges, const Dropout& key) {
  Tensor at = columns_for(p.rows(), p.device());
  run(p, [&]<class T>(auto on, T) {
    kernel::draw(on, p.in<T>(), in(ranges), key, at.data<int32_t>());
  });
  return at;
}

Tensor one_hot(const Tensor& at, const Tensor& as) {
  Tensor y = Tensor::like(as);
  run(y, [&]<class T>(auto on, T) { kernel::one_hot(on, at.data<int32_t>(), y.out<T>()); });
  return y;
}

Tensor straight_through(const Tensor& hard, const Tensor& soft) {
  return record(hard.view(hard.shape()), {soft}, [slot = soft.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) { pass(dy, dx, fold); });
  });
}

Tensor log_at(const Tensor& p, const Tensor& at) {
  Tensor y({p.rows(), 1}, p.type(), p.device());
  run(p,
      [&]<class T>(auto on, T) { kernel::log_at(on, p.in<T>(), at.data<int32_t>(), y.data<T>()); });
  return record(y, {p}, [=](const Tensor& dy) {  // dp = dy / p
    gather(p.slot(), [&](const Tensor& dp, OutputMode fold) {
      run(p, [&]<class T>(auto on, T) {
        kernel::log_at_grad(on, p.in<T>(), at.data<int32_t>(), dy.data<T>(), dp.out<T>(), fold);
      });
    });
  });
}

Tensor entropy(const Tensor& p) {
  Tensor y({p.rows(), 1}, p.type(), p.device());
  run(p, [&]<class T>(auto on, T) { kernel::entropy(on, p.in<T>(), y.data<T>()); });
  return record(y, {p}, [=](const Tensor& dy) {  // dp = −(log p + 1) dy
    gather(p.slot(), [&](const Tensor& dp, OutputMode fold) {
      run(p, [&]<class T>(auto on, T) {
        kernel::entropy_grad(on, p.in<T>(), dy.data<T>(), dp.out<T>(), fold);
      });
    });
  });
}

Tensor first_columns(const Tensor& x, const RaggedQueries& ragged) {
  const Tensor n = ragged.lengths();
  Tensor y({x.rows(), ragged.columns()}, x.type(), x.device());
  auto copy = [n](const Tensor& from, const Tensor& to, OutputMode fold) {
    run(from, [&]<class T>(auto on, T) {
      kernel::copy_first(on, from.in<T>(), n.data<int32_t>(), to.out<T>(), fold);
    });
  };
  copy(x, y, OutputMode::set);
  return record(y, {x}, [copy, slot = x.slot()](const Tensor& dy) {
    gather(slot, [&](const Tensor& dx, OutputMode fold) { copy(dy, dx, fold); });
  });
}

Tensor gaussian(const Tensor& p, double sigma, int64_t columns) {
  Tensor y({p.rows(), columns}, p.type(), p.device());
  run(p, [&]<class T>(auto on, T) { kernel::gaussian(on, p.data<T>(), sigma, y.out<T>()); });
  return record(y, {p}, [=](const Tensor& dy) {  // dp = Σ_j dy_j y_j (j − p) / σ²
    gather(p.slot(), [&](const Tensor& dp, OutputMode fold) {
      run(p, [&]<class T>(auto on, T) {
        kernel::gaussian_grad(on, p.data<T>(), sigma, y.in<T>(), dy.in<T>(), dp.data<T>(), fold);
      });
    });
  });
}

Tensor mixture(const Tensor& alpha_hat, const Tensor& beta_hat, const Tensor& kappa,
               const RaggedQueries& ragged) {
  const Tensor n = ragged.lengths();
  Tensor phi({ragged.queries(), ragged.columns()}, kappa.type(), kappa.device());
  auto gaussians = [=]<class T>(T) {
    return kernel::WindowMixture<T>{alpha_hat.in<T>(), beta_hat.in<T>(), kappa.in<T>(),
                                    n.data<int32_t>()};
  };
  run(kappa, [&]<class T>(auto on, T) { kernel::mixture(on, gaussians(T{}), phi.out<T>()); });
  return record(phi, {alpha_hat, beta_hat, kappa}, [=](const Tensor& dphi) {
    const Tensor da = Tensor::like(kappa), db = Tensor::like(kappa), dk = Tensor::like(kappa);
    run(kappa, [&]<class T>(auto on, T) {
      kernel::mixture_grad(on, gaussians(T{}), dphi.in<T>(), da.out<T>(), db.out<T>(), dk.out<T>());
    });
    auto pass_on = [](const Tensor& to, const Tensor& d) {
      gather(to.slot(), [&](const Tensor& dx, OutputMode fold) { pass(d, dx, fold); });
    };
    pass_on(alpha_hat, da);
    pass_on(beta_hat, db);
    pass_on(kappa, dk);
  });
}

Tensor uncovered(const Tensor& covered, const ColumnRanges& ranges) {
  Tensor left = Tensor::like(covered);
  run(covered, [&]<class T>(auto on, T) {
    kernel::uncovered(on, covered.in<T>(), in(ranges), left.out<T>());
  });
  return record(left, {covered}, [=](const Tensor& dleft) {  // dcovered = −dleft where covered < 1
    gather(covered.slot(), [&](const Tensor& dx, OutputMode fold) {
      run(covered, [&]<class T>(auto on, T) {
        kernel::uncovered_grad(on, covered.in<T>(), in(ranges), dleft.in<T>(), dx.out<T>(), fold);
      });
    });
  });
}

Tensor softmax_uncovered(const Tensor& e, const Tensor& left, const ColumnRanges& ranges) {
  Tensor y = Tensor::like(e);
  run(e, [&]<class T>(auto on, T) {
    kernel::softmax_uncovered(on, e.in<T>(), left.in<T>(), in(ranges), y.out<T>());
  });
  return record(y, {e, left}, [y, left, to_e = e.slot()](const Tensor& dy) {
    gather(to_e, [&](const Tensor& de, OutputMode fold) {  // de = y (dy − ⟨y, dy⟩)
      run(y, [&]<class T>(auto on, T) {
        kernel::softmax_uncovered_grad<T>(on, y.in<T>(), left.in<T>(), dy.in<T>(),
                                          {de.out<T>(), {}, fold, fold});
      });
    });
    gather(left.slot(), [&](const Tensor& dleft, OutputMode fold) {  // dleft = de / left
      run(y, [&]<class T>(auto on, T) {
        kernel::softmax_uncovered_grad<T>(on, y.in<T>(), left.in<T>(), dy.in<T>(),
                                          {{}, dleft.out<T>(), fold, fold});
      });
    });
  });
}

}  // namespace fovea
